package scenarios

// Means says what an observer can look at.
type Means struct {
	REST bool `json:"rest"`
	// SplitMetrics: gauges of single splits. Without them a snapshot's splits tell
	// the assignment only.
	SplitMetrics bool `json:"split_metrics"`
	// KafkaAdmin: offsets, times of the last append, record timestamps.
	KafkaAdmin bool `json:"kafka_admin"`
	// KafkaSample: the payload of the last record.
	KafkaSample bool `json:"kafka_sample"`
}

// Snapshot is what can be seen at one moment. Numbers that an observer cannot
// know are nil.
type Snapshot struct {
	AtMillis int64 `json:"at_ms"`
	// Sources are by id, Operators too, Kafka is by topic.
	Sources   map[string][]SourceSubtask  `json:"sources"`
	Operators map[string]OperatorNumbers  `json:"operators"`
	Kafka     map[string][]KafkaPartition `json:"kafka"`
	Tasks     []TaskLoad                  `json:"tasks"`
}

// SourceSubtask is one subtask of a source.
type SourceSubtask struct {
	Subtask         int             `json:"subtask"`
	OutputWatermark *Instant        `json:"output_watermark"`
	RecordsOut      int64           `json:"records_out"`
	Status          string          `json:"status"`
	Splits          []SplitSnapshot `json:"splits"`
}

// SplitSnapshot is one split of a source subtask.
type SplitSnapshot struct {
	Partition        int32    `json:"partition"`
	Watermark        *Instant `json:"watermark"`
	State            string   `json:"state"`
	Records          *int64   `json:"records"`
	MaxEventTime     *Instant `json:"max_event_time"`
	LastReadAtMillis *int64   `json:"last_read_at_ms"`
	PausedMillis     *int64   `json:"paused_ms_per_s"`
}

// OperatorNumbers is one operator: as a whole, or by subtask.
type OperatorNumbers struct {
	InputWatermark *Instant `json:"input_watermark"`
	// InputWatermarks are those of the inputs of an operator with several.
	InputWatermarks []Instant         `json:"input_watermarks"`
	OutputWatermark *Instant          `json:"output_watermark"`
	RecordsIn       *int64            `json:"records_in"`
	RecordsOut      *int64            `json:"records_out"`
	LateDropped     *int64            `json:"late_dropped"`
	OpenWindows     *int64            `json:"open_windows"`
	Subtasks        []OperatorSubtask `json:"subtasks"`
}

// OperatorSubtask is one subtask of an operator.
type OperatorSubtask struct {
	Subtask         int      `json:"subtask"`
	InputWatermark  *Instant `json:"input_watermark"`
	OutputWatermark *Instant `json:"output_watermark"`
	RecordsIn       *int64   `json:"records_in"`
	RecordsOut      *int64   `json:"records_out"`
	LateDropped     *int64   `json:"late_dropped"`
	OpenWindows     *int64   `json:"open_windows"`
	Status          string   `json:"status"`
}

// KafkaPartition is what Kafka says about a partition.
type KafkaPartition struct {
	Partition            int32    `json:"partition"`
	EndOffset            int64    `json:"end_offset"`
	Position             int64    `json:"position"`
	Lag                  int64    `json:"lag"`
	LastAppendAtMillis   *int64   `json:"last_append_at_ms"`
	LastRecordTimestamp  *Instant `json:"last_record_timestamp"`
	LastPayloadTimestamp *Instant `json:"last_payload_timestamp"`
}

// TaskLoad is where the time of a subtask went.
type TaskLoad struct {
	Vertex              string `json:"vertex"`
	Subtask             int    `json:"subtask"`
	BusyMillis          int64  `json:"busy_ms_per_s"`
	BackPressuredMillis int64  `json:"backpressured_ms_per_s"`
	IdleMillis          int64  `json:"idle_ms_per_s"`
}
