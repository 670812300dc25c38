//go:build synctests

package lowwatertest

// virtualClient says that the Kafka client's mutexes are visible to bubbles.
const virtualClient = true
