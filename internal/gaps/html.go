package gaps

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// chartRows is how many partitions a chart shows, those with the largest values.
const chartRows = 24

// Geometry of a chart, in pixels: labels, then "0", then a logarithmic axis.
const (
	chartLabel  = 96
	chartZero   = 64
	chartScale  = 690
	chartRow    = 30
	chartBar    = 24
	chartBins   = 80
	chartHeader = 22
)

type htmlReport struct {
	Title, Headline string
	Notes           []string
	Recommended     string
	Unfit           string
	Charts          []chart
	Window          string
	Interval        string
	Outcomes        []htmlOutcome
	Partitions      []htmlPartition
}

type htmlOutcome struct {
	Bound, Idle              string
	Late                     int64
	Share                    string
	Heat                     float64 // 0 to 1
	P50, P99, Max            string
	Idled, Returned, LateRet int64
	HasIdle                  bool
	Held                     int
	Best                     bool
}

type htmlPartition struct {
	Number             int32
	Records            int64
	Last, Behind, Gap  string
	Late, LateAfter    int64
	Idled, ReturnsLate int64
}

// chart is one distribution by partition: a row of bars for each, on a common logarithmic
// axis.
type chart struct {
	Title, Text   string
	Width, Height int
	Ticks         []tick
	Rows          []chartLine
	// Mark is a vertical line, if Marked.
	Marked    bool
	Mark      float64
	MarkLabel string
	MarkEnd   bool // the label is left of the line
	Omitted   int
}

type tick struct {
	X     float64
	Label string
}

type chartLine struct {
	Label string
	// Zero is the share of 0.
	Zero     string
	Baseline int
	Bars     []bar
	Max      string
	MaxX     float64
}

type bar struct {
	X, Y, W, H float64
	Title      string
}

// HTML writes the report as a page that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	out := htmlReport{
		Title: "Gaps of " + r.data.Topic, Headline: r.headline(), Notes: r.Notes,
		Window: format(r.options.Window), Interval: format(r.options.Interval),
	}
	gapChart := r.chart("Gaps between records", "By append time. An idle timeout below a gap makes a partition go idle and come back",
		func(p *Partition) *Histogram { return &p.Gaps })
	disorderChart := r.chart("Disorder", "How far a record is behind the largest event time before it in its partition. A bound below that makes it late",
		func(p *Partition) *Histogram { return &p.Disorder })
	out.Unfit = r.unfit
	if best := r.Best(); best != nil {
		out.Recommended = fmt.Sprintf("%s. %s", best.Choice, best.why(r.lateShare))
		disorderChart.mark(best.Bound.Milliseconds(), "bound "+format(best.Bound))
		if best.Idle > 0 {
			gapChart.mark(best.Idle.Milliseconds(), "idleness "+format(best.Idle))
		}
	}
	out.Charts = []chart{gapChart, disorderChart}
	if r.data.Field != "" || r.data.LogAppendTime {
		out.Charts = append(out.Charts, r.chart("Delay", "Append time minus event time", func(p *Partition) *Histogram { return &p.Delay }))
	}
	for i := range r.outcomes {
		out.Outcomes = append(out.Outcomes, htmlOutcomeOf(&r.outcomes[i], i == r.best))
	}
	for i, p := range r.data.Partitions {
		out.Partitions = append(out.Partitions, r.htmlPartition(i, p))
	}
	return pageTemplate.Execute(w, out)
}

func htmlOutcomeOf(o *Outcome, best bool) htmlOutcome {
	total := o.total()
	h := htmlOutcome{
		Bound: format(o.Bound), Idle: "none", Late: o.Late, Share: percent(o.LateShare()), Held: o.Held, Best: best,
		// From 0.001 % to 10 % the colour grows.
		Heat:  math.Round(100*min(1, max(0, (math.Log10(max(o.LateShare(), 1e-9))+5)/4))) / 100,
		Idled: total.Idled, Returned: total.Returned, LateRet: total.ReturnedLate,
	}
	if o.Idle > 0 {
		h.Idle, h.HasIdle = format(o.Idle), true
	}
	if o.Wait.Count() > 0 {
		q := o.Wait.Quantiles()
		h.P50, h.P99, h.Max = formatMillis(q.P50Millis), formatMillis(q.P99Millis), formatMillis(q.MaxMillis)
	}
	return h
}

func (r *Report) htmlPartition(i int, p *Partition) htmlPartition {
	h := htmlPartition{Number: p.Number, Records: p.Records, Last: "-", Behind: "-", Gap: "-"}
	if p.Records > 0 {
		h.Last = clock(p.LastAppend)
		h.Behind = formatMillis(p.Disorder.Quantile(0.999)) + " / " + formatMillis(p.Disorder.Max())
		h.Gap = formatMillis(p.Gaps.Quantile(0.99)) + " / " + formatMillis(p.Gaps.Max())
	}
	if best := r.Best(); best != nil {
		o := best.Partitions[i]
		h.Late, h.LateAfter, h.Idled, h.ReturnsLate = o.Late, o.LateAfterIdle, o.Idled, o.ReturnedLate
	}
	return h
}

// chart draws a distribution of every partition.
func (r *Report) chart(title, text string, of func(*Partition) *Histogram) chart {
	c := chart{Title: title, Text: text, Width: chartLabel + chartZero + chartScale + 70}
	partitions := slices.DeleteFunc(slices.Clone(r.data.Partitions), func(p *Partition) bool { return of(p).Count() == 0 })
	if len(partitions) > chartRows {
		slices.SortStableFunc(partitions, func(a, b *Partition) int { return int(of(b).Max()/2 - of(a).Max()/2) })
		c.Omitted = len(partitions) - chartRows
		partitions = partitions[:chartRows]
		slices.SortFunc(partitions, func(a, b *Partition) int { return int(a.Number - b.Number) })
	}
	for i, p := range partitions {
		c.Rows = append(c.Rows, chartLineOf(p.Number, chartHeader+(i+1)*chartRow-4, of(p)))
	}
	c.Height = chartHeader + len(c.Rows)*chartRow + 6
	for _, t := range []int64{1, 10, 100, 1000, 10_000, 60_000, 600_000, 3600_000, 12 * 3600_000, 4 * 24 * 3600_000, 30 * 24 * 3600_000} {
		c.Ticks = append(c.Ticks, tick{chartX(t), formatMillis(t)})
	}
	c.Ticks = append(c.Ticks, tick{chartLabel + 24, "0"})
	return c
}

// chartX places a duration on the axis: 0 left of it, and 1 ms to 40 days on it.
func chartX(millis int64) float64 {
	if millis <= 0 {
		return chartLabel + 24
	}
	const longest = 40 * 24 * 3600_000
	x := chartLabel + chartZero + chartScale*math.Log(float64(millis))/math.Log(longest)
	return round(min(x, chartLabel+chartZero+chartScale))
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

func chartLineOf(partition int32, baseline int, h *Histogram) chartLine {
	line := chartLine{
		Label: fmt.Sprintf("partition %d", partition), Baseline: baseline,
		Max: formatMillis(h.Max()), MaxX: chartX(h.Max()) + 6,
	}
	const width = float64(chartScale) / chartBins
	var bins [chartBins + 1]int64 // the first is for 0
	for i, n := range h.buckets {
		switch v := min(bucketEnd(i), h.max); {
		case v <= 0:
			bins[0] += n
		default:
			at := int((chartX(v) - chartLabel - chartZero) / width)
			bins[1+min(at, chartBins-1)] += n
		}
	}
	if bins[0] > 0 {
		line.Zero = percent(float64(bins[0]) / float64(h.count))
	}
	largest := slices.Max(bins[1:])
	for i, n := range bins[1:] {
		if n == 0 {
			continue
		}
		b := bar{
			X: round(chartLabel + chartZero + float64(i)*width), W: width - 1,
			H:     round(max(1.5, chartBar*math.Sqrt(float64(n)/float64(largest)))),
			Title: fmt.Sprintf("%s of the records (%d)", percent(float64(n)/float64(h.count)), n),
		}
		b.Y = round(float64(baseline) - b.H)
		line.Bars = append(line.Bars, b)
	}
	return line
}

// mark draws a vertical line at a duration.
func (c *chart) mark(millis int64, label string) {
	c.Marked, c.Mark, c.MarkLabel = true, chartX(millis), label
	c.MarkEnd = c.Mark > chartLabel+chartZero+chartScale*3/4
}
