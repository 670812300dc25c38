package why

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Style is how a report is written.
type Style struct {
	// Width is the length of lines to aim for; 0 is 80. Code is never wrapped.
	Width int
	// Numbers adds the numbers that prove a finding, by their names in JSON.
	Numbers bool
	// Bold uses the terminal's bold face for the answer and the headings.
	Bold bool
}

// Write writes a report for people: the answer in the first line, then why, what was
// ruled out, the fix as code for the engine of the job, what it costs, and further
// findings. The error is that of w.
func (d *Diagnosis) Write(w io.Writer, style Style) error {
	p := &printer{width: cmp.Or(style.Width, 80), bold: style.Bold, showsNumbers: style.Numbers}
	p.answer(d.Answer(), d.Engine.Name)
	if len(d.Findings) > 1 {
		p.heading("further findings")
		for i := range d.Findings[1:] {
			f := &d.Findings[i+1]
			p.text("  ", fmt.Sprintf("%s (%s): %s", f.Code, f.Severity, f.Answer))
		}
	}
	unseen := d.Failed
	if f := d.Answer(); f.Severity != Fine || f.Code == NotEnoughEvidence {
		unseen = slices.Concat(d.Blind, d.Failed)
	}
	if len(unseen) > 0 {
		p.heading("could not see")
		for _, s := range unseen {
			p.text("  ", s)
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// String returns the report with its numbers and without colours.
func (d *Diagnosis) String() string {
	var b strings.Builder
	_ = d.Write(&b, Style{Numbers: true}) // a Builder has no errors
	return b.String()
}

// printer lays out lines.
type printer struct {
	b     strings.Builder
	width int
	bold  bool
	// showsNumbers is Style.Numbers.
	showsNumbers bool
}

func (p *printer) answer(f *Finding, engine EngineName) {
	p.strong(p.wrapped("", f.Answer))
	wrong := f.Severity != Fine || f.Code == NotEnoughEvidence
	if wrong {
		p.text("", fmt.Sprintf("%s, %s%s", f.Code, f.Severity, likely(f)))
	}
	if where := f.Culprit.text(); where != "" {
		p.text("", where)
	}
	if len(f.Why) > 0 || p.showsNumbers && wrong && len(f.Numbers) > 0 {
		p.heading("why")
		for _, s := range f.Why {
			p.text("  ", s)
		}
		p.numbers(f.Numbers)
	}
	if len(f.RuledOut)+len(f.Unless) > 0 {
		p.heading("ruled out")
		for _, r := range f.RuledOut {
			p.text("  ", fmt.Sprintf("%s: %s", r.Code, r.Because))
		}
		for _, u := range f.Unless {
			p.text("  ", fmt.Sprintf("not ruled out: %s, which takes %s to tell", u.Code, u.Needs))
		}
	}
	p.fixes(f.Fixes, engine)
	if len(f.Then) > 0 {
		p.heading("then")
		p.text("  ", "Once that is out of the way: "+list(f.Then)+".")
	}
	if len(f.Consequences) > 0 {
		p.heading("explains")
		p.text("  ", "It also accounts for what looks like "+list(f.Consequences)+".")
	}
}

// likely marks a finding that could be another.
func likely(f *Finding) string {
	if len(f.Unless) == 0 {
		return ""
	}
	return ", likely"
}

// text writes where a culprit is.
func (c *Culprit) text() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("source", c.Source)
	add("topic", c.Topic)
	if len(c.Partitions) > 0 {
		parts = append(parts, numbered("partition", c.Partitions))
	}
	if len(c.Subtasks) > 0 {
		parts = append(parts, numbered("subtask", c.Subtasks))
	}
	add("operator", c.Operator)
	if c.Input.OK {
		parts = append(parts, fmt.Sprintf("input %d", c.Input.Value))
	}
	add("key", c.Key)
	if len(c.Paused) > 0 {
		add("paused:", list(c.Paused))
	}
	return strings.Join(parts, ", ")
}

func (p *printer) numbers(all []Number) {
	if len(all) == 0 || !p.showsNumbers {
		return
	}
	var each []string
	for _, n := range all {
		each = append(each, n.Name+"="+n.text())
	}
	p.text("  ", strings.Join(each, " "))
}

// text writes the value; the ends of time by their names.
func (n Number) text() string {
	switch n.Value {
	case MinTime:
		return "min"
	case MaxTime:
		return "max"
	}
	return strconv.FormatInt(n.Value, 10)
}

// fixes writes the first fix with its code, the others in a line.
func (p *printer) fixes(fixes []Fix, engine EngineName) {
	for i, f := range fixes {
		if i == 0 {
			p.heading("fix: " + string(f.Code))
			p.text("  ", f.Do)
			code, language := f.In(engine)
			if code != "" {
				p.put("    " + language + ":\n")
				for line := range strings.SplitSeq(code, "\n") {
					p.put("      " + strings.ReplaceAll(line, "\t", "    ") + "\n")
				}
			}
			p.text("  ", "Costs: "+f.Costs)
			continue
		}
		if i == 1 {
			p.heading("or")
		}
		p.text("  ", fmt.Sprintf("%s: %s", f.Code, f.Do))
	}
}

func (p *printer) heading(name string) { p.strong(name + "\n") }

func (p *printer) strong(s string) {
	if !p.bold {
		p.put(s)
		return
	}
	p.b.WriteString("\x1b[1m")
	p.put(strings.TrimSuffix(s, "\n"))
	p.b.WriteString("\x1b[0m\n")
}

func (p *printer) text(indent, s string) { p.put(p.wrapped(indent, s)) }

// put writes all that others may have chosen.
func (p *printer) put(s string) { p.b.WriteString(Plain(s)) }

// Plain drops from a text what would steer a terminal: control characters but for line ends,
// and those that turn the direction of writing. Names of jobs, operators and topics, errors
// and reports are others' text, and go through this before they are shown.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}

// wrapped breaks a paragraph into lines.
func (p *printer) wrapped(indent, s string) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
			b.WriteString(indent)
			length = len(indent)
		case length+1+len(word) > p.width:
			b.WriteString("\n" + indent + "  ")
			length = len(indent) + 2
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
