// Package web is the Web UI as built files: its TypeScript sources are beside this
// file, what Vite makes of them is in dist and embedded here.
//
// It serves files and nothing else: the data that the pages show comes from the REST
// interface of the same server, which this package does not know. dist is committed, so
// that building lowwater needs Go only; check.sh says whether it is what the sources give.
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed dist
var built embed.FS

// FS returns the built files, index.html at the top.
func FS() fs.FS {
	dist, _ := fs.Sub(built, "dist") // only an invalid name is an error
	return dist
}

// contentTypes are fixed here, because those of package mime depend on the machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policy lets the pages load nothing but their own files and talk to nobody but their
// own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the pages: index.html at /, the rest under its own path. It answers
// GET and HEAD, 405 to other methods, and 404 to paths that are no built file; see Has.
func Handler() http.Handler {
	files := FS()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		name := fileName(r.URL.Path)
		content, err := fs.ReadFile(files, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", contentTypes[path.Ext(name)])
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", caching(name))
		w.Write(content) // an error is the client's going away
	})
}

// Has reports whether Handler has a file for a request's path.
func Has(urlPath string) bool {
	info, err := fs.Stat(FS(), fileName(urlPath))
	return err == nil && info.Mode().IsRegular()
}

func fileName(urlPath string) string {
	if urlPath == "/" {
		return "index.html"
	}
	return strings.TrimPrefix(urlPath, "/")
}

// caching: the names of assets contain a hash of their content, so they never change.
func caching(name string) string {
	if strings.HasPrefix(name, "assets/") {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}
