package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// keepAlive is how often a stream without news says that it is there.
const keepAlive = 15 * time.Second

// tick is what a stream of events says whenever there is something new to ask for.
type tick struct {
	Version int64 `json:"version"`
	Now     int64 `json:"now"`
}

// events streams a tick each second while a job runs, and when one starts or ends, as
// server-sent events.
func (s *Server) events() http.Handler {
	streams := make(chan struct{}, maxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case streams <- struct{}{}:
			defer func() { <-streams }()
		default:
			refuse(w, http.StatusServiceUnavailable, "Too many streams of events at the same time.")
			return
		}
		out := http.NewResponseController(w)
		_ = out.SetReadDeadline(time.Time{}) // that of the request would end the stream
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		for {
			version, changed := s.jobs.Version()
			data, err := json.Marshal(tick{version, time.Now().UnixMilli()})
			if err != nil {
				return
			}
			// The stream has no end of its own, each write has one.
			_ = out.SetWriteDeadline(time.Now().Add(requestTimeout))
			if _, err := fmt.Fprintf(w, "event: tick\nid: %d\ndata: %s\n\n", version, data); err != nil || out.Flush() != nil {
				return
			}
			alive := time.NewTimer(keepAlive)
			select {
			case <-changed:
			case <-alive.C:
			case <-r.Context().Done():
				alive.Stop()
				return
			}
			alive.Stop()
		}
	})
}
