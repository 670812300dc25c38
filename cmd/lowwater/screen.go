package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// textWidth is where text is broken into lines.
const textWidth = 80

// screen is where a demo writes. On a terminal a table replaces the one before
// it; elsewhere tables follow each other.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	live bool
	// replaceable is the number of lines that the next table overwrites.
	replaceable int
	// headed says that the head of the table was printed.
	headed bool
	// blank says that the last line was blank.
	blank bool
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if file, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := file.Stat()
		s.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// width is that of the terminal, or textWidth elsewhere.
func (s *screen) width() int {
	if file, ok := s.w.(*os.File); ok && s.live {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return textWidth
}

// lines prints lines that stay.
func (s *screen) lines(lines ...string) { s.print(lines, 0) }

// gap prints a blank line, unless the last line is one.
func (s *screen) gap() {
	s.mu.Lock()
	blank := s.blank
	s.mu.Unlock()
	if !blank {
		s.lines("")
	}
}

// table prints what is true now, below lines that stay.
func (s *screen) table(stay []string, headline, head string, rows []string) {
	now := []string{headline}
	if s.live || !s.headed {
		s.headed = true
		now = append(now, head)
	}
	now = append(now, rows...)
	s.print(append(stay, now...), len(now))
}

// keep makes the last table stay; the next one is another.
func (s *screen) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaceable, s.headed = 0, false
}

func (s *screen) print(lines []string, replaceable int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.live && s.replaceable > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.replaceable) // up to the last table, erase it
	}
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " "))
		b.WriteByte('\n')
	}
	s.replaceable = replaceable
	s.blank = len(lines) > 0 && lines[len(lines)-1] == ""
	// A demo that nobody can see has nothing better to do than to go on.
	_, _ = io.WriteString(s.w, b.String())
}

// text prints paragraphs, broken into lines and indented.
func (s *screen) text(indent string, paragraphs ...string) {
	var lines []string
	for _, p := range paragraphs {
		lines = append(lines, wrap(indent, p)...)
	}
	s.lines(lines...)
}

// wrap breaks text into lines of at most textWidth.
func wrap(indent, text string) []string {
	var lines []string
	line := indent
	for i, word := range strings.Fields(text) {
		if i > 0 {
			if len(line)+1+len(word) > textWidth {
				lines = append(lines, line)
				line = indent
			} else {
				line += " "
			}
		}
		line += word
	}
	return append(lines, line)
}

// warnings is a log that shows warnings and errors on the screen.
type warnings struct {
	screen *screen
	attrs  []slog.Attr
}

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	text := "warning: " + r.Message
	if r.Level >= slog.LevelError {
		text = "error: " + r.Message
	}
	var details []string
	add := func(a slog.Attr) bool {
		switch {
		case a.Key == "fix":
			text += " Fix: " + a.Value.String() + "."
		case a.Value.Kind() == slog.KindTime:
			details = append(details, a.Key+"="+clock(a.Value.Time().UnixMilli()))
		default:
			details = append(details, a.String())
		}
		return true
	}
	for _, a := range w.attrs {
		add(a)
	}
	r.Attrs(add)
	w.screen.gap()
	w.screen.text("  ", fmt.Sprintf("%s [%s]", text, strings.Join(details, " ")))
	w.screen.gap()
	return nil
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	w.attrs = append(slices.Clip(w.attrs), attrs...)
	return w
}

// WithGroup is not used by the engine.
func (w warnings) WithGroup(string) slog.Handler { return w }
