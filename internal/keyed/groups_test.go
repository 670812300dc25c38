package keyed

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type keyGroupsCase struct {
	caseHead
	Keys []struct {
		Type     string          `json:"type"`
		Value    json.RawMessage `json:"value"`
		HashCode int32           `json:"hashCode"`
		Murmur   uint32          `json:"murmur"`
		KeyGroup map[int]int     `json:"keyGroup"`
	} `json:"keys"`
	Ranges []struct {
		MaxParallelism    int      `json:"maxParallelism"`
		Parallelism       int      `json:"parallelism"`
		RangePerSubtask   [][2]int `json:"rangePerSubtask"`
		SubtaskOfKeyGroup []int    `json:"subtaskOfKeyGroup"`
	} `json:"ranges"`
	Defaults []struct {
		Parallelism    int `json:"parallelism"`
		MaxParallelism int `json:"maxParallelism"`
	} `json:"defaults"`
}

func TestConformanceKeyGroups(t *testing.T) {
	replay(t, "key_groups", func(t *testing.T, c keyGroupsCase) {
		if len(c.Keys)+len(c.Ranges)+len(c.Defaults) == 0 {
			t.Fatal("nothing to check")
		}
		for _, k := range c.Keys {
			hash, code := vectorKeyHash(t, k.Type, k.Value)
			if got := int32(code); got != k.HashCode {
				t.Errorf("%s: hash code %d, want %d", k.Value, got, k.HashCode)
			}
			if got := uint32(hash >> 32); got != k.Murmur {
				t.Errorf("%s: murmur %d, want %d", k.Value, got, k.Murmur)
			}
			for maxParallelism, want := range k.KeyGroup {
				if got := KeyGroup(hash, maxParallelism); got != want {
					t.Errorf("%s: group %d of %d, want %d", k.Value, got, maxParallelism, want)
				}
			}
		}
		for _, r := range c.Ranges {
			var ranges [][2]int
			for i := range r.Parallelism {
				own := RangeOf(i, r.Parallelism, r.MaxParallelism)
				ranges = append(ranges, [2]int{own.First, own.Last})
			}
			if diff := cmp.Diff(r.RangePerSubtask, ranges); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
			var owners []int
			for g := range r.MaxParallelism {
				owners = append(owners, SubtaskOf(g, r.Parallelism, r.MaxParallelism))
			}
			if diff := cmp.Diff(r.SubtaskOfKeyGroup, owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		}
		for _, d := range c.Defaults {
			if got := DefaultMaxParallelism(d.Parallelism); got != d.MaxParallelism {
				t.Errorf("default for %d: %d, want %d", d.Parallelism, got, d.MaxParallelism)
			}
		}
	})
}

// vectorKeyHash returns the hash and the Java hash code of a key in a vector.
func vectorKeyHash(t *testing.T, typ string, value json.RawMessage) (hash uint64, code uint32) {
	t.Helper()
	switch typ {
	case "string":
		return hashOf[string](t, value)
	case "int":
		return hashOf[int32](t, value)
	case "long":
		return hashOf[int64](t, value)
	case "bool":
		return hashOf[bool](t, value)
	case "float":
		return hashOf[float32](t, value)
	case "double":
		return hashOf[float64](t, value)
	case "tuple2_string_int":
		type pair struct {
			F0 string
			F1 int32
		}
		var fields [2]json.RawMessage
		var p pair
		unmarshalStrict(t, value, &fields)
		unmarshalStrict(t, fields[0], &p.F0)
		unmarshalStrict(t, fields[1], &p.F1)
		return hasherOf[pair](t)(p), javaOf(t, p)
	default:
		t.Fatalf("unknown key type %q", typ)
		return 0, 0
	}
}

func hashOf[K comparable](t *testing.T, value json.RawMessage) (hash uint64, code uint32) {
	t.Helper()
	var k K
	unmarshalStrict(t, value, &k)
	return hasherOf[K](t)(k), javaOf(t, k)
}

// Every key group has exactly one owner, and range and owner agree.
func TestGroupsPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxParallelism := rapid.IntRange(1, UpperBoundMaxParallelism).Draw(t, "max parallelism")
		parallelism := rapid.IntRange(1, maxParallelism).Draw(t, "parallelism")
		next := 0
		for i := range parallelism {
			r := RangeOf(i, parallelism, maxParallelism)
			if r.First != next || r.Len() < 1 {
				t.Fatalf("subtask %d owns %v, want a range from %d", i, r, next)
			}
			for _, g := range []int{r.First, r.Last} {
				if got := SubtaskOf(g, parallelism, maxParallelism); got != i || !r.Contains(g) {
					t.Fatalf("group %d belongs to %d, but is in the range %v of %d", g, got, r, i)
				}
			}
			if r.Contains(r.First-1) || r.Contains(r.Last+1) {
				t.Fatalf("%v contains its neighbours", r)
			}
			next = r.Last + 1
		}
		if next != maxParallelism {
			t.Fatalf("groups from %d on have no owner", next)
		}
	})
}

func TestAssignmentIsSubtaskOfKeyGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxParallelism := rapid.OneOf(
			rapid.SampledFrom([]int{1, 2, 128, 4096, UpperBoundMaxParallelism}),
			rapid.IntRange(1, UpperBoundMaxParallelism),
		).Draw(t, "max parallelism")
		parallelism := rapid.IntRange(1, maxParallelism).Draw(t, "parallelism")
		a := NewAssignment(parallelism, maxParallelism)
		for range 100 {
			hash := rapid.Uint64Max(1<<63-1).Draw(t, "hash")
			want := SubtaskOf(KeyGroup(hash, maxParallelism), parallelism, maxParallelism)
			if got := a.Subtask(hash); got != want {
				t.Fatalf("hash %#x: subtask %d, want %d", hash, got, want)
			}
		}
	})
}
