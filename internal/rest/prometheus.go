package rest

import (
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lowwater/lowwater/internal/rest/observe"
)

// prometheus serves the metrics of all jobs, and those of the process, for Prometheus.
func (s *Server) prometheus() http.Handler {
	host, _, _ := net.SplitHostPort(s.Addr().String())
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		observe.NewCollector(s.jobs, host, s.worker),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
