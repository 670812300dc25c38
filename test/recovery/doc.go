// Package recovery proves, in virtual time, that a job that is interrupted in any way
// gives the results of one that is not: nothing lost, nothing twice, nothing wrong.
//
// Each trial is made from a seed, which the tests print on failure. The same with real
// processes, brokers and disks is test/chaos.
package recovery
