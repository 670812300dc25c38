package scenarios

import (
	"encoding/json/jsontext"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecords(t *testing.T) {
	millis := func(n int64) *int64 { return &n }
	cell := func(cells ...string) (row []jsontext.Value) {
		for _, c := range cells {
			row = append(row, jsontext.Value(c))
		}
		return row
	}
	record := func(partition int32, key string, appended, read, payload, kafka int64) Record {
		return Record{Topic: "in", Partition: partition, Key: key, AppendMillis: appended, ReadMillis: read, PayloadTime: payload, KafkaMillis: kafka}
	}
	tests := []struct {
		name  string
		topic Topic
		want  []Record
	}{
		{
			"series",
			Topic{Series: []Series{{
				Partition: 1, FromMillis: 100, ToMillis: 400, EveryMillis: 100, PayloadFirst: 7, PayloadStep: 10,
				PayloadJitter: []int64{0, -3}, Keys: []string{"a", "b"},
			}}},
			[]Record{record(1, "a", 100, 100, 7, 5100), record(1, "b", 200, 200, 14, 5200), record(1, "a", 300, 300, 27, 5300)},
		},
		{
			"before the start",
			Topic{Series: []Series{{FromMillis: -150, ToMillis: 51, EveryMillis: 100}}},
			[]Record{record(0, "", -150, 0, 0, 4850), record(0, "", -50, 0, 0, 4950), record(0, "", 50, 50, 0, 5050)},
		},
		{
			"slow reader",
			Topic{Series: []Series{{
				ToMillis: 400, EveryMillis: 100, ReadFromMillis: millis(50), ReadEveryMillis: millis(150), KafkaMillis: millis(-1),
			}}},
			[]Record{record(0, "", 0, 50, 0, -1), record(0, "", 100, 200, 0, -1), record(0, "", 200, 350, 0, -1), record(0, "", 300, 500, 0, -1)},
		},
		{
			"a fast reader waits for records",
			Topic{Series: []Series{{ToMillis: 300, EveryMillis: 100, ReadFromMillis: millis(150), ReadEveryMillis: millis(10)}}},
			[]Record{record(0, "", 0, 150, 0, 5000), record(0, "", 100, 160, 0, 5100), record(0, "", 200, 200, 0, 5200)},
		},
		{
			"reading follows offsets",
			Topic{
				Series: []Series{{ToMillis: 20, EveryMillis: 20, ReadDelayMillis: 500}},
				Rows:   [][]jsontext.Value{cell("10", "0", "1", `"x"`), cell("10", "1", "2", `"y"`), cell("0", "0", "3", `"z"`)},
			},
			[]Record{
				record(0, "", 0, 500, 0, 5000), // a series is in front of rows
				record(0, "z", 0, 500, 3, 5000),
				record(0, "x", 10, 500, 1, 5010),
				record(1, "y", 10, 10, 2, 5010),
			},
		},
		{
			"columns",
			Topic{
				Columns: []string{"k", "kts", "rt", "at", "p", "ts"},
				Rows:    [][]jsontext.Value{cell(`"x"`, "9", "70", "60", "1", "4"), cell(`"y"`, "null", "null", "61", "0", "5")},
			},
			[]Record{record(1, "x", 60, 70, 4, 9), record(0, "y", 61, 61, 5, 5061)},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.topic.Name = "in"
			s := &Scenario{WallStartMillis: 5000, Topics: []Topic{test.topic}}
			got, err := s.Records()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
