package metric

import (
	"slices"
	"sync"

	"github.com/lowwater/lowwater/status"
)

// Sampled counts records of a kind that deserves attention, and describes the latest
// of them. It takes a lock: not once a record, where there may be many.
type Sampled struct {
	mu sync.Mutex
	v  status.Sample
}

const maxSamples = 20

// Add counts n records and keeps descriptions of some of them.
func (s *Sampled) Add(n int64, descriptions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.Count += n
	s.v.Latest = append(s.v.Latest, descriptions...)
	if extra := len(s.v.Latest) - maxSamples; extra > 0 {
		s.v.Latest = slices.Delete(s.v.Latest, 0, extra)
	}
}

// Value returns the count and the latest descriptions.
func (s *Sampled) Value() status.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return status.Sample{Count: s.v.Count, Latest: slices.Clone(s.v.Latest)}
}

// Drop counts a record that the operator did not pass on, under a reason such as
// "malformed" and with a description of the record.
func (o *Operator) Drop(reason, description string) { o.dropped(reason).Add(1, description) }

// DropN is Drop for n records that nothing more is known of.
func (o *Operator) DropN(reason string, n int64) { o.dropped(reason).Add(n) }

func (o *Operator) dropped(reason string) *Sampled {
	o.dropsMu.Lock()
	defer o.dropsMu.Unlock()
	s := o.drops[reason]
	if s == nil {
		s = &Sampled{}
		if o.drops == nil {
			o.drops = map[string]*Sampled{}
		}
		o.drops[reason] = s
	}
	return s
}

// Drops returns what Drop counted, by reason.
func (o *Operator) Drops() map[string]status.Sample {
	o.dropsMu.Lock()
	defer o.dropsMu.Unlock()
	out := make(map[string]status.Sample, len(o.drops))
	for reason, s := range o.drops {
		out[reason] = s.Value()
	}
	return out
}
