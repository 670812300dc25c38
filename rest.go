package lowwater

import (
	"context"
	"errors"
	"log/slog"

	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
)

// DefaultRESTAddr is where clients of Flink look for its REST API: 127.0.0.1:8081.
const DefaultRESTAddr = rest.DefaultAddr

// RESTOption is a setting of a REST server. Wrong ones are returned by ServeREST, or fail
// the start of the job.
type RESTOption func(*rest.Config)

// RESTToken makes every request need a token: as the header "Authorization: Bearer TOKEN"
// or, for browsers, as the password of any user. By default there is none. An empty one is
// refused: it is what a variable holds that was not set.
func RESTToken(token string) RESTOption {
	return func(c *rest.Config) { c.Token, c.NeedsToken = token, true }
}

// RESTWithTLS serves HTTPS with the certificate and the key of these files, in PEM. They
// are read once, when the server starts; both are needed.
func RESTWithTLS(certFile, keyFile string) RESTOption {
	return func(c *rest.Config) { c.CertFile, c.KeyFile = certFile, keyFile }
}

// RESTAllowedOrigins lets pages of other servers, such as "https://dashboards.example.com",
// use the API. By default none may. Each is scheme://host or scheme://host:port; of several
// calls the last counts.
func RESTAllowedOrigins(origins ...string) RESTOption {
	return func(c *rest.Config) { c.AllowedOrigins = origins }
}

// RESTLogger sets where the server's own errors go; the default is slog.Default, and the
// job's logger for a server of WithREST.
func RESTLogger(l *slog.Logger) RESTOption {
	return func(c *rest.Config) { c.Logger = l }
}

// RESTServer serves what jobs look like: Flink's monitoring REST API, metrics for Prometheus
// at /metrics, and the Web UI. It serves the jobs of every environment that it is given to
// by WithRESTServer, and goes on to show those that have ended.
type RESTServer struct{ server *rest.Server }

// ServeREST starts a server on addr, host:port; "" is DefaultRESTAddr, and port 0 any free
// one. An address that cannot be listened on is an error. One that can be reached from
// other machines is refused unless there is a token or TLS: whoever reaches the server can
// see and cancel jobs.
func ServeREST(addr string, options ...RESTOption) (*RESTServer, error) {
	server, err := listen(addr, options, nil)
	if err != nil {
		return nil, err
	}
	return &RESTServer{server}, nil
}

func listen(addr string, options []RESTOption, logger *slog.Logger) (*rest.Server, error) {
	cfg := rest.Config{Addr: addr, Logger: logger}
	for _, o := range options {
		if o == nil {
			return nil, errors.New("REST server: an option is nil")
		}
		o(&cfg)
	}
	return rest.Listen(cfg)
}

// Addr returns the address that the server listens on.
func (s *RESTServer) Addr() string { return s.server.Addr().String() }

// URL returns where the Web UI is.
func (s *RESTServer) URL() string { return s.server.URL() }

// Close ends the server; answers under way have up to two seconds to get done. Jobs that it
// serves go on. Closing it again does nothing.
func (s *RESTServer) Close() error { return s.server.Close() }

// WithREST serves the job while it runs: the server starts before the job and ends with it,
// before Execute or Wait returns. See ServeREST for addr and for a server that several jobs
// share, or that outlives its jobs; its errors are returned by Start. It does not work in a
// testing/synctest bubble.
func WithREST(addr string, options ...RESTOption) Option {
	return func(e *Environment) {
		e.serve = func(logger *slog.Logger) (*rest.Server, func() error, error) {
			server, err := listen(addr, options, logger)
			if err != nil {
				return nil, nil, err
			}
			return server, server.Close, nil
		}
	}
}

// WithRESTServer serves the job on a server that the caller closes. Of WithREST and
// WithRESTServer the last one counts.
func WithRESTServer(s *RESTServer) Option {
	return func(e *Environment) {
		if s == nil {
			e.fail("WithRESTServer: the server is nil")
			return
		}
		e.serve = func(*slog.Logger) (*rest.Server, func() error, error) {
			return s.server, func() error { return nil }, nil
		}
	}
}

// startServed starts the job, and before it the server that shows it.
func (e *Environment) startServed(ctx context.Context) (*Job, error) {
	if e.serve == nil {
		j, err := job.Start(ctx, &e.graph, e.options)
		return &Job{job: j, name: e.graph.Name}, err
	}
	server, closeServer, err := e.serve(e.options.Logger)
	if err != nil {
		return nil, err
	}
	j, err := job.Start(ctx, &e.graph, e.options)
	if err != nil {
		return nil, errors.Join(err, closeServer())
	}
	server.Jobs().Add(observe.NewJob(j, &e.graph, e.options))
	served := &Job{job: j, name: e.graph.Name, served: make(chan struct{}), restAddr: server.Addr().String()}
	go func() {
		defer close(served.served)
		<-j.Done()
		if err := closeServer(); err != nil {
			e.options.Logger.Warn("closing the REST server failed", "error", err)
		}
	}()
	return served, nil
}

// RESTAddr returns the address of the server that shows the job, empty if there is none.
func (j *Job) RESTAddr() string { return j.restAddr }
