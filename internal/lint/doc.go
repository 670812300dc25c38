// Package lint holds the style rules of this repository as tests, each naming
// what to write instead: `go test ./internal/lint`.
//
// It has rules that need no judgement and that no standard tool knows. What gofmt
// and go vet find is not repeated here, and nothing imports this package.
//
// Every rule has a snippet in rules_test.go that breaks it, so that a rule that
// stops finding anything is noticed. An exception is an entry in an allow list
// beside the rule, with its reason; an entry that is no longer needed fails.
package lint
