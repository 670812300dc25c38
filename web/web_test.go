package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return w.Result()
}

func TestHandler(t *testing.T) {
	script := someAsset(t, ".js")
	for _, test := range []struct {
		method, path string
		status       int
		contentType  string
		cache        string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", "no-cache"},
		{"HEAD", "/index.html", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/" + script, 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", "/" + someAsset(t, ".css"), 200, "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", "/" + someAsset(t, ".svg"), 200, "image/svg+xml", "public, max-age=31536000, immutable"},
		{"POST", "/", 405, "text/plain; charset=utf-8", ""},
		{"GET", "/assets", 404, "text/plain; charset=utf-8", ""},
		{"GET", "/assets/none.js", 404, "text/plain; charset=utf-8", ""},
		{"GET", "/../web.go", 404, "text/plain; charset=utf-8", ""},
		{"GET", "//index.html", 404, "text/plain; charset=utf-8", ""},
	} {
		response := get(t, test.method, "http://localhost"+test.path)
		h := response.Header
		if response.StatusCode != test.status || h.Get("Content-Type") != test.contentType || h.Get("Cache-Control") != test.cache {
			t.Errorf("%s %s: %d, type %q, cache %q; want %d, %q, %q", test.method, test.path,
				response.StatusCode, h.Get("Content-Type"), h.Get("Cache-Control"), test.status, test.contentType, test.cache)
		}
		if csp := h.Get("Content-Security-Policy"); test.status == 200 && (!strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe")) {
			t.Errorf("%s: content security policy %q", test.path, csp)
		}
		if got := Has(test.path); test.method == "GET" && got != (test.status == 200) {
			t.Errorf("Has(%q) = %v", test.path, got)
		}
	}
}

func someAsset(t *testing.T, ext string) string {
	t.Helper()
	names, err := fs.Glob(FS(), "assets/*"+ext)
	if err != nil || len(names) == 0 {
		t.Fatalf("no asset %s (%v)", ext, err)
	}
	return names[0]
}

// TestBuild: every file has a type and a hash in its name, and the page refers to files
// of the build only.
func TestBuild(t *testing.T) {
	hashed := regexp.MustCompile(`-[\w-]{8}\.\w+$`)
	err := fs.WalkDir(FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if contentTypes[path.Ext(name)] == "" {
			t.Errorf("%s: no content type", name)
		}
		if name != "index.html" && (!strings.HasPrefix(name, "assets/") || !hashed.MatchString(name)) {
			t.Errorf("%s: an asset without a hash would be cached for ever", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := fs.ReadFile(FS(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	references := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page), -1)
	if len(references) < 3 {
		t.Errorf("index.html refers to %d files, want a script, a style sheet and an icon", len(references))
	}
	for _, r := range references {
		if !Has(strings.TrimPrefix(r[1], ".")) {
			t.Errorf("index.html refers to %q, which is not in the build", r[1])
		}
	}
}
