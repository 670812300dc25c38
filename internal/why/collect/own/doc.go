// Package own collects evidence for package why from a job of ours, in its own process: it
// translates the job's plan and its status.
//
// It keeps no history of its own beyond what it is given, and asks nobody: whoever runs the
// job calls Add from time to time.
package own
