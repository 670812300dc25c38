//go:build synctests

package gaps

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lowwater/lowwater/internal/kafkatest"
)

// TestReadEndWithoutRecord: reading ends although the last offset of a partition has no
// record, as after a compaction, also without a limit of time.
func TestReadEndWithoutRecord(t *testing.T) {
	for _, brokerFails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := kafkatest.Start(t)
			c.CreateTopic(t, "orders", 1)
			c.Produce(t, "orders", kafkatest.Text(0, base, "", "a"), kafkatest.Text(0, base+1, "", "b"))
			asked := 0
			c.Fake.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
				c.Fake.KeepControl()
				asked++
				return endsAt(request.(*kmsg.ListOffsetsRequest), 5, brokerFails && asked > 2), nil, true
			})
			began := time.Now()
			d, err := Read(t.Context(), options(c), ReadOptions{Topic: "orders"})
			if err != nil {
				t.Fatal(err)
			}
			p := d.Partitions[0]
			if took := time.Since(began); d.Records != 2 || took > 2*time.Minute {
				t.Errorf("%d records in %v", d.Records, took)
			}
			if complete := p.complete() && p.Missing == 3 && d.Stopped == ""; complete == brokerFails || brokerFails && d.Stopped == "" {
				t.Errorf("broker fails: %t; %d of %d, %d missing, stopped %q", brokerFails, p.Next, p.End, p.Missing, d.Stopped)
			}
		})
	}
}

// endsAt answers with offsets from 0 to end, or with an error that is not tried again.
func endsAt(request *kmsg.ListOffsetsRequest, end int64, fails bool) kmsg.Response {
	answer := request.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, topic := range request.Topics {
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = topic.Topic
		for _, p := range topic.Partitions {
			out := kmsg.NewListOffsetsResponseTopicPartition()
			out.Partition, out.LeaderEpoch = p.Partition, p.CurrentLeaderEpoch
			if p.Timestamp == -1 {
				out.Offset = end
			} else {
				out.Offset = 0
			}
			if fails {
				out.ErrorCode = kerr.TopicAuthorizationFailed.Code
			}
			t.Partitions = append(t.Partitions, out)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer
}
