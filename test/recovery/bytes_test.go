//go:build synctests

package recovery

import (
	"testing"

	"github.com/lowwater/lowwater/internal/kafkatest"
)

// What Kafka gave and took is counted in bytes, at the ends of the job.
func TestBytesAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "in", int32(trial.splits))
		c.CreateTopic(t, "out", 2)
		trial.produce(t, c)
		env := checkpointed("mem://bytes")
		trial.kafkaJob(env, c)
		j, err := env.Start(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		size := func(topic string) (n int64) {
			for _, r := range c.ReadAll(t, topic) {
				n += int64(len(r.Key) + len(r.Value))
			}
			return n
		}
		var in, out int64
		for _, v := range j.Status().Vertices {
			for _, s := range v.Subtasks {
				for _, o := range s.Operators {
					in, out = in+o.BytesIn, out+o.BytesOut
				}
			}
		}
		if want := size("in"); in != want {
			t.Errorf("%d bytes read, want %d", in, want)
		}
		if want := size("out"); out != want || out == 0 {
			t.Errorf("%d bytes written, want %d", out, want)
		}
	})
}
