package rest

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/lowwater/lowwater/internal/rest/observe"
)

// handler returns everything that the server answers.
func (s *Server) handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	routes := map[string]http.Handler{}
	s.flinkRoutes(routes)
	s.lowwaterRoutes(routes)
	routes["GET /metrics"] = s.prometheus()
	for pattern, h := range routes {
		mux.Handle(pattern, h)
	}
	mux.Handle("/", fallback(cfg.UI))
	return cfg.guard(withoutVersion(mux))
}

// withoutVersion lets every path also be asked for below /v1, as in Flink.
func withoutVersion(next http.Handler) http.Handler {
	stripped := http.StripPrefix("/v1", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			stripped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fallback serves the Web UI's files, and Flink's errors for what there is not.
func fallback(ui fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, http.StatusNotFound, "Not found: "+r.URL.Path)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		if ui == nil && name == "index.html" {
			w.Header().Set("Content-Type", "text/html; charset=UTF-8")
			_, _ = w.Write([]byte("<!doctype html><title>lowwater</title><p>The Web UI is not part of this build. The REST API is at <a href=\"/jobs/overview\">/jobs/overview</a>.\n"))
			return
		}
		if ui == nil || !isFile(ui, name) {
			refuse(w, http.StatusNotFound, "Unable to load requested file "+r.URL.Path+".")
			return
		}
		// Scripts come from here alone, and nothing is embedded elsewhere.
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'")
		w.Header().Set("Cache-Control", "no-cache")
		if strings.HasPrefix(name, "assets/") { // named by their contents
			w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		}
		http.ServeFileFS(w, r, ui, name)
	})
}

// isFile reports whether name is a file that may be served. Names that leave the file system
// are none.
func isFile(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return fs.ValidPath(name) && err == nil && info.Mode().IsRegular()
}

// job returns the job that a request is about.
func (s *Server) job(r *http.Request) (*observe.Observed, error) {
	id := r.PathValue("jid")
	if !isID(id) {
		return nil, badPath("jobid", id)
	}
	o := s.jobs.Job(id)
	if o == nil {
		return nil, notFound(notFoundException, "Job %s not found", id)
	}
	return o, nil
}

// isID reports whether id has the shape of Flink's ids.
func isID(id string) bool {
	if len(id) != 32 {
		return false
	}
	for _, c := range id {
		if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}
