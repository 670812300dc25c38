package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// StateID identifies the node's state in checkpoints: the uid, or, where the author gave
// none, something derived from the node's place in the graph. That changes with any
// change of the graph before the node, so jobs that live long give uids. It is called
// first when the graph is complete, by Plan at the latest.
func (n *Node) StateID() string {
	switch {
	case n.UID != "":
		return n.UID
	case n.stateID != "":
		return n.stateID
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d", n.ID)
	for _, e := range n.Inputs {
		_, _ = io.WriteString(h, "\x00"+e.From.StateID())
	}
	n.stateID = "auto-" + hex.EncodeToString(h.Sum(nil)[:8])
	return n.stateID
}

// StateID identifies the vertex in checkpoints: its head's.
func (v *Vertex) StateID() string { return v.Head().StateID() }
