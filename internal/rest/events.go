package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// keepAlive is how often a stream without news says that it is there.
	keepAlive = 15 * time.Second
	// tickInterval is the least time between two ticks of a stream. Each job has news once a
	// second at a time of its own, and a page asks for all of them at every tick.
	tickInterval = time.Second
)

// tick is what a stream of events says whenever there is something new to ask for.
type tick struct {
	Version int64 `json:"version"`
	Now     int64 `json:"now"`
}

// events streams a tick each second while jobs run, however many, and when one starts or
// ends, as server-sent events.
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
			if !wait(r.Context(), tickInterval, nil) || !wait(r.Context(), keepAlive-tickInterval, changed) {
				return
			}
		}
	})
}

// wait waits for d, or until news comes, and reports whether ctx goes on.
func wait(ctx context.Context, d time.Duration, news <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-ctx.Done():
		return false
	}
	return true
}
