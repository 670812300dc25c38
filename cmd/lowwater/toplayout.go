package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Styles of lines, as a terminal takes them.
const (
	styleBold  = "\x1b[1m"
	styleFaint = "\x1b[2m"
	styleHeld  = "\x1b[1;33m"
)

type line struct{ text, style string }

// lines lays the frame out in at most height lines; 0 is no limit. The answer goes before
// all else; of the tables some rows give way, and then whole tables.
func (f *frame) lines(width, height int) []line {
	top := f.summary(width, height)
	tables := f.tables(width)
	if height > 0 {
		share(tables, height-len(top))
	}
	for _, t := range tables {
		if t.shown > 0 {
			top = append(top, line{})
			top = append(top, t.lines(width)...)
		}
	}
	return top
}

// summary is what stands above the tables. Where there is not room for all, the answer stays,
// then why the last look failed, then the title.
func (f *frame) summary(width, height int) []line {
	style := ""
	if f.alarm {
		style = styleHeld
	}
	var answer []line
	for _, l := range wrapAt(f.answer, width) {
		answer = append(answer, line{l, style})
	}
	room := height - len(answer)
	if height > 0 && room < 0 {
		answer = answer[:height]
		answer[height-1].text = cut(answer[height-1].text+" …", width)
	}
	fits := func() bool {
		room--
		return height == 0 || room >= 0
	}
	var failure []line
	if f.failure != "" && fits() {
		failure = []line{{cut("could not look: "+f.failure, width), styleHeld}}
	}
	var out []line
	if fits() {
		out = append(out, line{cut("lowwater top · "+f.title, width), styleBold})
	}
	out = append(append(out, failure...), answer...)
	if f.path != "" && fits() {
		out = append(out, line{cut(f.path, width), ""})
	}
	return out
}

// tables are those of the frame, in the order of the screen, with all their rows.
func (f *frame) tables(width int) []*frameTable {
	vertices := f.vertices
	if widths := columnWidths(vertexHead, vertices); width < readableName+behindFirst(widths) {
		vertices = withoutBars(vertices)
	}
	out := []*frameTable{{head: vertexHead, rows: vertices, marked: f.held, right: 1, rank: 0}}
	if len(f.states) > 0 {
		out = append(out, &frameTable{head: stateHead, rows: f.states, marked: make([]bool, len(f.states)), right: 1, rank: 2})
	}
	if len(f.splits) > 0 {
		out = append(out, &frameTable{head: splitHead, rows: f.splits, marked: f.holds, right: 3, rank: 1})
	}
	for _, t := range out {
		t.shown = len(t.rows)
	}
	return slices.DeleteFunc(out, func(t *frameTable) bool { return len(t.rows) == 0 })
}

// frameTable is a table of which some rows are shown.
type frameTable struct {
	head   []string
	rows   [][]string
	marked []bool
	// right is the first column that is aligned to the right.
	right int
	// rank says which table goes last, 0, if there is no room for all.
	rank  int
	shown int
}

// height is how many lines the table takes, with the one above it.
func (t *frameTable) height() int {
	switch t.shown {
	case 0:
		return 0
	case len(t.rows):
		return 2 + t.shown
	}
	return 3 + t.shown // the last says how many more there are
}

// share shows as many rows of tables as fit into room lines, of each about as many as of the
// others, unless it has fewer.
func share(tables []*frameTable, room int) {
	height := func() int {
		n := 0
		for _, t := range tables {
			n += t.height()
		}
		return n
	}
	if height() <= room {
		return
	}
	for _, t := range tables {
		t.shown = 0
	}
	// grow shows one more row of a table, if there is one and room for it.
	grow := func(t *frameTable) bool {
		if t.shown == len(t.rows) {
			return false
		}
		t.shown++
		if height() > room {
			t.shown--
			return false
		}
		return true
	}
	for _, t := range slices.SortedFunc(slices.Values(tables), func(a, b *frameTable) int { return a.rank - b.rank }) {
		grow(t)
	}
	for more := true; more; {
		more = false
		for _, t := range tables {
			if t.shown > 0 && grow(t) {
				more = true
			}
		}
	}
}

// lines are those of the rows that are shown: the marked ones first of all, in the order of
// the table.
func (t *frameTable) lines(width int) []line {
	var places []int
	for _, marked := range []bool{true, false} {
		for i := range t.rows {
			if t.marked[i] == marked {
				places = append(places, i)
			}
		}
	}
	places = places[:t.shown]
	slices.Sort(places)
	var rows [][]string
	var marked []bool
	for _, i := range places {
		rows = append(rows, t.rows[i])
		marked = append(marked, t.marked[i])
	}
	out := table(t.head, rows, marked, t.right, width)
	if hidden := len(t.rows) - t.shown; hidden > 0 {
		out = append(out, line{cut(fmt.Sprintf("… %d more", hidden), width), styleFaint})
	}
	return out
}

// table lays out rows in columns: the first gives way if there is no room, those from
// the right-th on are aligned to the right.
func table(head []string, rows [][]string, marked []bool, right, width int) []line {
	const narrowest = 12
	widths := columnWidths(head, rows)
	widths[0] = min(widths[0], max(width-behindFirst(widths), narrowest))
	format := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			cell = cut(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				b.WriteString(cell + pad)
			case i >= right:
				b.WriteString("  " + pad + cell)
			default:
				b.WriteString("  " + cell + pad)
			}
		}
		return cut(strings.TrimRight(b.String(), " "), width)
	}
	out := []line{{format(head), styleFaint}}
	for i, row := range rows {
		style := ""
		if marked[i] {
			style = styleHeld
		}
		out = append(out, line{format(row), style})
	}
	return out
}

func columnWidths(head []string, rows [][]string) []int {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(harmless(cell)))
		}
	}
	return widths
}

// behindFirst is what the columns behind the first take, with the gaps before them.
func behindFirst(widths []int) int {
	rest := 0
	for _, w := range widths[1:] {
		rest += w + 2
	}
	return rest
}

// harmless keeps a text to its line, and drops what a terminal would take for more than
// text: names and errors come from elsewhere.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, s)
}

// cut shortens a text to width.
func cut(s string, width int) string {
	s = harmless(s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}

// wrapAt breaks a text into lines of at most width, and words that are longer.
func wrapAt(text string, width int) []string {
	var out []string
	for _, word := range strings.Fields(harmless(text)) {
		if n := len(out); n > 0 && utf8.RuneCountInString(out[n-1])+1+utf8.RuneCountInString(word) <= width {
			out[n-1] += " " + word
			continue
		}
		for part := range slices.Chunk([]rune(word), max(width, 1)) {
			out = append(out, string(part))
		}
	}
	return out
}

// readableName is the room for names that is worth more than bars.
const readableName = 24

// withoutBars leaves of each bar its percentage.
func withoutBars(rows [][]string) [][]string {
	short := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			short[i] = append(short[i], strings.TrimLeft(cell, "█░ "))
		}
	}
	return short
}
