// Package keyed is what keyed operators keep by key: key groups and the hash
// that assigns them, tables, timers and the state backend.
//
// A key's hash is computed once, when its record is partitioned, and travels
// with it. Its upper 32 bits are Flink's key hash, which fixes the key group,
// so that snapshots can move between engines; its lower 32 bits place the key
// in a table of this process and mean nothing outside it. Nothing that can be
// observed, least of all an order, depends on them.
//
// Everything here belongs to one subtask and is used by its goroutine alone: no
// clock and no locks, except for Snapshot, which a second goroutine writes while the
// subtask goes on. There is no I/O but that of state beyond its memory budget, which
// package spill keeps. How a value becomes bytes is package codec's, where the
// bytes go package checkpoint's.
package keyed
