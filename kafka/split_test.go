package kafka

import "testing"

func TestJavaHash(t *testing.T) {
	// What Java's String.hashCode returns.
	tests := map[string]int32{
		"":                        0,
		"a":                       97,
		"hello":                   99162322,
		"orders":                  -1008770331,
		"polygenelubricants":      -2147483648,
		"user-events.v2_eu-west1": -1412482219,
	}
	for topic, want := range tests {
		if got := javaHash(topic); got != want {
			t.Errorf("javaHash(%q) = %d, want %d", topic, got, want)
		}
	}
}

func TestOwner(t *testing.T) {
	tests := []struct {
		topic       string
		partition   int32
		parallelism int
		want        int
	}{
		// orders: -1008770331 * 31 = -31271880261, in 32 bits -1207109189,
		// & 0x7fffffff = 940374459; % 4 = 3, % 3 = 0.
		{"orders", 0, 4, 3},
		{"orders", 1, 4, 0},
		{"orders", 5, 4, 0},
		{"orders", 0, 3, 0},
		{"orders", 7, 3, 1},
		{"orders", 7, 1, 0},
		// hello: 99162322 * 31 = 3074031982, in 32 bits -1220935314,
		// & 0x7fffffff = 926548334; % 7 = 5.
		{"hello", 0, 7, 5},
		{"hello", 3, 7, 1},
		// MinInt * 31 = MinInt, & 0x7fffffff = 0.
		{"polygenelubricants", 2, 5, 2},
	}
	for _, tt := range tests {
		if got := owner(partition{tt.topic, tt.partition}, tt.parallelism); got != tt.want {
			t.Errorf("owner(%s-%d, %d) = %d, want %d", tt.topic, tt.partition, tt.parallelism, got, tt.want)
		}
	}
}

func TestSplit(t *testing.T) {
	bounded, unbounded := Split{"a-b", 2, 5, 9, true}, Split{Topic: "a-b", Partition: 2, Start: 5}
	if got, want := bounded.ID(), "a-b-2"; got != want {
		t.Errorf("ID = %q, want %q", got, want)
	}
	if got, want := bounded.String(), "a-b-2 (start 5, stop 9)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got, want := unbounded.String(), "a-b-2 (start 5, no stop)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}
