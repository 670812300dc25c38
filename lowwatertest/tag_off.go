//go:build !synctests

package lowwatertest

const virtualClient = false
