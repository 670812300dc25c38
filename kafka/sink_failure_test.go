package kafka

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

func TestSinkTimestampsBeyondKafka(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	sink := NewSink(raw.String{}, Brokers(c.Brokers()...), ClientOptions(c.Options()...), Topic("out"))
	began := time.Now().UnixMilli()
	endOfTime := &connector.Batch[string]{}
	endOfTime.Append("global window", math.MaxInt64, 0)
	write(t, sink, endOfTime)
	if got := c.ReadAll(t, "out"); len(got) != 1 || got[0].Millis < began {
		t.Errorf("a value at the end of time was written as %+v, want the time of writing", got)
	}
	micros := &connector.Batch[string]{}
	micros.Append("microseconds", 1_900_000_000_000_000, 0)
	err := openWriter(t, sink).Write(t.Context(), micros)
	if err == nil || !strings.Contains(err.Error(), "milliseconds") || !strings.Contains(err.Error(), "1900000000000000") {
		t.Errorf("microseconds taken for milliseconds: got %v, want an error that says so", err)
	}
}

// A writer that failed after its last Write says so when it is asked.
func TestSinkReportsFailureWhileQuiet(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	sink := NewSink(raw.String{}, Brokers(c.Brokers()...), ClientOptions(c.Options()...), Topic("out"))
	w := openWriter(t, sink)
	reporter := w.(connector.FailureReporter)
	b := &connector.Batch[string]{}
	b.Append(strings.Repeat("x", 2<<20), 1, 0) // larger than a broker takes
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err == nil {
		t.Fatal("the record was accepted")
	}
	if err := reporter.Failure(); err == nil || !strings.Contains(err.Error(), "out") {
		t.Errorf("Failure: got %v, want the error of topic out", err)
	}
}
