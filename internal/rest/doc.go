// Package rest serves what jobs look like over HTTP: Apache Flink's monitoring REST with
// its paths, shapes and metric names, lowwater's own additions below /lowwater/, metrics in
// Prometheus' format, and the Web UI.
//
// It decides who may ask. What there is to see is package observe's; it runs no jobs and
// keeps nothing of its own but requests under way.
package rest
