package scenarios

import (
	"cmp"
	"fmt"
	"slices"
)

// Record is one record of a topic.
type Record struct {
	Topic     string
	Partition int32
	Key       string
	// AppendMillis and ReadMillis are when it is appended and when it may be read,
	// both since the start of the job.
	AppendMillis int64
	ReadMillis   int64
	// PayloadTime is the time in the payload, in whatever unit the producer used.
	PayloadTime int64
	// KafkaMillis is the record timestamp since the epoch, -1 for none.
	KafkaMillis int64
}

// Records returns the records of all topics in the order in which they are
// appended. Within a partition that is the order of offsets, and they are read in
// it.
func (s *Scenario) Records() ([]Record, error) {
	var all []Record
	for i := range s.Topics {
		t := &s.Topics[i]
		for j := range t.Series {
			all = t.Series[j].records(all, t.Name, s.WallStartMillis)
		}
		for j := range t.Rows {
			r, err := t.row(j, s.WallStartMillis)
			if err != nil {
				return nil, fmt.Errorf("topic %s: row %d: %w", t.Name, j, err)
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Record) int { return cmp.Compare(a.AppendMillis, b.AppendMillis) })
	type place struct {
		topic     string
		partition int32
	}
	ahead := map[place]int64{}
	for i := range all {
		r := &all[i]
		at := place{r.Topic, r.Partition}
		r.ReadMillis = max(r.ReadMillis, ahead[at], 0)
		ahead[at] = r.ReadMillis
	}
	return all, nil
}

func (s *Series) records(to []Record, topic string, wallStartMillis int64) []Record {
	for n := int64(0); s.FromMillis+n*s.EveryMillis < s.ToMillis; n++ {
		at := s.FromMillis + n*s.EveryMillis
		r := Record{
			Topic:        topic,
			Partition:    s.Partition,
			Key:          cycle(s.Keys, n),
			AppendMillis: at,
			ReadMillis:   at + s.ReadDelayMillis,
			PayloadTime:  s.PayloadFirst + n*s.PayloadStep + cycle(s.PayloadJitter, n),
			KafkaMillis:  wallStartMillis + at,
		}
		if s.KafkaMillis != nil {
			r.KafkaMillis = *s.KafkaMillis
		}
		if s.ReadFromMillis != nil && s.ReadEveryMillis != nil {
			r.ReadMillis = max(r.ReadMillis, *s.ReadFromMillis+n**s.ReadEveryMillis)
		}
		to = append(to, r)
	}
	return to
}

// cycle returns element n of a list that goes on for ever, the zero value of an
// empty one.
func cycle[T any](list []T, n int64) (element T) {
	if len(list) == 0 {
		return element
	}
	return list[n%int64(len(list))]
}

var defaultColumns = []string{"at", "p", "ts", "k"}

func (t *Topic) row(i int, wallStartMillis int64) (Record, error) {
	columns := t.Columns
	if columns == nil {
		columns = defaultColumns
	}
	r := Record{Topic: t.Name}
	var read, kafka *int64
	err := readRow(columns, t.Rows[i], map[string]any{
		"at": &r.AppendMillis, "p": &r.Partition, "ts": &r.PayloadTime, "k": &r.Key, "rt": &read, "kts": &kafka,
	})
	r.ReadMillis, r.KafkaMillis = r.AppendMillis, wallStartMillis+r.AppendMillis
	if read != nil {
		r.ReadMillis = *read
	}
	if kafka != nil {
		r.KafkaMillis = *kafka
	}
	return r, err
}
