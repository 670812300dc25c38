package kafka

import (
	"cmp"
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The times that ListOffsets takes for the ends of the log.
const (
	atEnd   int64 = -1
	atStart int64 = -2
)

var errNoAnswer = errors.New("the broker did not answer for the partition")

// listed is the answer for one partition: an offset, or -1 if no record is that
// late, or an error.
type listed struct {
	offset int64
	err    error
}

func comparePartitions(a, b partition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.num, b.num))
}

// listOffsets asks the leaders of partitions for the offset of the first record
// at or after a time in milliseconds, or for atStart or atEnd. Every partition
// has an answer.
func listOffsets(ctx context.Context, client *kgo.Client, parts []partition, millis int64, isolation int8) map[partition]listed {
	answers := make(map[partition]listed, len(parts))
	for _, p := range parts {
		answers[p] = listed{err: errNoAnswer}
	}
	for _, shard := range client.RequestSharded(ctx, listRequest(parts, millis, isolation)) {
		if shard.Err != nil {
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					answers[partition{t.Topic, p.Partition}] = listed{err: shard.Err}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				answers[partition{t.Topic, p.Partition}] = listed{p.Offset, kerr.ErrorForCode(p.ErrorCode)}
			}
		}
	}
	return answers
}

func listRequest(parts []partition, millis int64, isolation int8) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = isolation
	index := map[string]int{}
	for _, p := range parts {
		i, ok := index[p.topic]
		if !ok {
			i = len(req.Topics)
			index[p.topic] = i
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = p.topic
			req.Topics = append(req.Topics, topic)
		}
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition = p.num
		part.Timestamp = millis
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	return req
}
