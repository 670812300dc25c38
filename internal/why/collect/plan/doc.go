// Package plan turns the plan of a job of ours into operators of evidence, and says what
// is wrong with a job before any record flows.
//
// It looks at plans only: what a running job does is for package why.
package plan
