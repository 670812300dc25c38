package kafka

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// repeatLogAfter is how often the same warning may be logged while it lasts.
const repeatLogAfter = 30 * time.Second

// occasionally lets a repeating message through now and then. The zero value is
// ready. It is safe for concurrent use.
type occasionally struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (o *occasionally) allow(message string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if last, ok := o.last[message]; ok && now.Sub(last) < repeatLogAfter {
		return false
	}
	if o.last == nil {
		o.last = map[string]time.Time{}
	}
	o.last[message] = now
	return true
}

// clientLogger passes the client's warnings on to slog, with errors under the name
// that they have everywhere. The client repeats them for as long as a broker is away.
type clientLogger struct {
	to   *slog.Logger
	seen occasionally
}

func newClientLogger(to *slog.Logger) *clientLogger {
	return &clientLogger{to: to.With("component", "franz-go")}
}

func (*clientLogger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l *clientLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if !l.seen.allow(msg) {
		return
	}
	keyvals = slices.Clone(keyvals)
	for i := 0; i < len(keyvals); i += 2 {
		if keyvals[i] == "err" {
			keyvals[i] = "error"
		}
	}
	if level == kgo.LogLevelError {
		l.to.Error(msg, keyvals...)
		return
	}
	l.to.Warn(msg, keyvals...)
}
