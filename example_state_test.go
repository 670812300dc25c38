package lowwater_test

import (
	"context"
	"log"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/state"
)

// pairing holds one record back until the next one comes. The one that it holds is in
// operator state, so that it is not lost with a restart.
type pairing struct{ held state.ListState[string] }

func (f *pairing) Open(ctx *lowwater.OperatorOpenContext) error {
	f.held = ctx.OperatorList(state.OperatorList[string]("held"))
	return nil
}

func (f *pairing) ProcessElement(_ *lowwater.ProcessContext, word string, out *lowwater.Collector[string]) error {
	held := f.held.Get()
	if len(held) == 0 {
		f.held.Add(word)
		return nil
	}
	out.Emit(held[0] + " and " + word)
	f.held.Clear()
	return nil
}

// Operator state belongs to a subtask instead of to a key.
func ExampleDataStream_ProcessStateful() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	words := lowwater.FromSlice(env, []string{"salt", "pepper", "cup", "saucer", "one"})
	words.ProcessStateful(func() *pairing { return &pairing{} }).Print()
	if err := env.Execute(context.Background(), "pairs"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// salt and pepper
	// cup and saucer
}
