package rest

import (
	"net/http"
	"strings"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/web"
)

// handler returns everything that the server answers.
func (s *Server) handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range s.routes() {
		mux.Handle(pattern, h)
	}
	mux.Handle("/", fallback())
	return cfg.guard(withoutVersion(mux))
}

// routes returns what answers to each pattern; openapi.yaml describes them.
func (s *Server) routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"GET /metrics":               s.prometheus(),
		"GET /lowwater/events":       s.events(),
		"GET /lowwater/openapi.yaml": http.HandlerFunc(serveOpenAPI),
	}
	s.flinkRoutes(routes)
	s.lowwaterRoutes(routes)
	return routes
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
func fallback() http.Handler {
	ui := web.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuse(w, http.StatusNotFound, "Not found: "+r.URL.Path)
		case !web.Has(r.URL.Path):
			refuse(w, http.StatusNotFound, "Unable to load requested file "+r.URL.Path+".")
		default:
			ui.ServeHTTP(w, r)
		}
	})
}

// job returns the job that a request is about.
func (s *Server) job(r *http.Request) (*observe.Observed, error) {
	id, err := pathID(r, "jid", "jobid")
	if err != nil {
		return nil, err
	}
	o := s.jobs.Job(id)
	if o == nil {
		return nil, notFound(notFoundException, "Job %s not found", id)
	}
	return o, nil
}

// pathID returns an id in the path of a request, as ids are written here. In Flink, too,
// the case of its digits does not matter.
func pathID(r *http.Request, name, parameter string) (string, error) {
	id := r.PathValue(name)
	if !isID(id) {
		return "", badPath(parameter, id)
	}
	return strings.ToLower(id), nil
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
