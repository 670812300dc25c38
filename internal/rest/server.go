package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
)

// DefaultAddr is where Flink's clients look for a server.
const DefaultAddr = "127.0.0.1:8081"

const (
	// headerTimeout and bodyTimeout bound the time that a client may take for the header and
	// the body of a request, requestTimeout for all of it and its answer.
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 5 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	// maxHeaderBytes and maxBodyBytes bound what a request may hold.
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 64 << 10
	// maxRequests and maxStreams bound what is answered at the same time, requests and
	// streams of events, maxBodies how many bodies of requests are read before that.
	maxRequests = 64
	maxBodies   = 64
	maxStreams  = 32
	// closeTimeout is how long Close waits for answers under way, lingerTimeout for
	// clients to ask for the results of what they started.
	closeTimeout  = 2 * time.Second
	lingerTimeout = 5 * time.Second
)

// Config is the settings of a server. The zero value serves on DefaultAddr.
type Config struct {
	// Addr is where to listen, host:port; port 0 is any free one.
	Addr string
	// Token, if not empty, is what every request must bring, but for the Web UI's files.
	Token string
	// NeedsToken refuses an empty Token.
	NeedsToken bool
	// CertFile and KeyFile hold the certificate and key for TLS, in PEM. Both or none.
	CertFile, KeyFile string
	// AllowedOrigins are the pages of other servers that may read answers, such as
	// "https://dashboards.example.com". Empty: none.
	AllowedOrigins []string
	Logger         *slog.Logger
	// Listen makes the listener; nil is net.Listen. Tests have a network of their own, on
	// which virtual time can pass.
	Listen func(network, address string) (net.Listener, error)
}

// Server serves the jobs of a registry.
type Server struct {
	jobs     *observe.Registry
	listener net.Listener
	http     *http.Server
	tls      bool
	// worker is the id of this process as Flink's one TaskManager.
	worker     string
	operations operations
	log        *slog.Logger
	closing    context.CancelFunc
	once       sync.Once
	closeErr   error
}

// Listen starts a server for the jobs that its registry is given. It refuses settings under
// which anyone who reaches the address could see and cancel jobs.
func Listen(cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = DefaultAddr
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var certificate *tls.Certificate
	if cfg.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("REST server: the TLS certificate or key: %w", err)
		}
		certificate = &pair
	}
	listen := cfg.Listen
	if listen == nil {
		listen = net.Listen
	}
	listener, err := listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("REST server: %w: choose another address, or port 0 for a free one", err)
	}
	ctx, closing := context.WithCancel(context.Background())
	s := &Server{
		jobs: observe.NewRegistry(), listener: listener, tls: certificate != nil, log: cfg.Logger, closing: closing,
		worker: listener.Addr().String() + "-" + observe.NewID()[:6],
	}
	s.http = &http.Server{
		Handler:           s.handler(cfg),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{*certificate},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
		})
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the REST server ended", "error", err)
		}
	}()
	return s, nil
}

// Jobs returns the jobs that are served.
func (s *Server) Jobs() *observe.Registry { return s.jobs }

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns where the Web UI is.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	return scheme + "://" + s.Addr().String() + "/"
}

// Close ends the server and the watching of its jobs. Answers under way have a moment to
// get done, and clients that wait for a savepoint to ask for it.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.operations.linger(lingerTimeout)
		s.closing()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			s.closeErr = s.http.Close()
		}
		s.jobs.Close()
	})
	return s.closeErr
}
