package rest

import (
	_ "embed"
	"net/http"
)

// openAPI describes all that the server answers; docs/openapi.yaml is the same file.
//
//go:embed openapi.yaml
var openAPI []byte

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI) // a client that has gone needs no answer
}
