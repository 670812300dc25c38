// Package connector is the vocabulary between the engine and the outside
// world: what a source and a sink implement, and the batches of records they
// exchange with the engine.
//
// It holds types and interfaces only. Nothing here connects, decodes, assigns
// timestamps or runs a goroutine; connectors (package kafka and its
// neighbours) do the first two, the engine the rest.
package connector
