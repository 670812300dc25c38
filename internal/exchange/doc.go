// Package exchange moves batches and signals between the subtasks of one
// process: channels with credits, the inbox a subtask reads them from, and the
// writers that partition an output over the channels of an edge.
//
// It does not know what a watermark means (package progress does), never
// looks inside a batch beyond what its partitioner was built for, and starts
// no goroutine.
//
// # Credits
//
// A channel has a fixed number of credits. Sending a message takes one, the
// receiver gives it back when it has processed the message. An inbox has room
// for all credits of all its channels, so a sender that holds a credit never
// blocks, and the memory between two subtasks is bounded by credits × batch
// size. A sender without a credit waits: that wait is back pressure, and the
// task measures it.
package exchange
