package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/lowwater/lowwater/eventtime"
)

// failure is an answer that is an error, in Flink's shape.
type failure struct {
	code     int
	messages []string
}

func (f *failure) Error() string { return strings.Join(f.messages, " ") }

// notFound and badRequest make failures. class is the exception that Flink names there;
// its clients show it.
func notFound(class, format string, args ...any) error {
	return &failure{http.StatusNotFound, []string{class + ": " + fmt.Sprintf(format, args...)}}
}

func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, []string{fmt.Sprintf(format, args...)}}
}

// handler answers a request with a value to send as JSON.
type handler func(r *http.Request) (any, error)

// accepted is an answer to a request that goes on behind it.
type accepted struct{ body any }

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := h(r)
	code := http.StatusOK
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			f = &failure{http.StatusInternalServerError, []string{"Internal server error.", err.Error()}}
		}
		body, code = errorBody{f.messages}, f.code
	} else if a, ok := body.(accepted); ok {
		body, code = a.body, http.StatusAccepted
	}
	send(w, code, body)
}

type errorBody struct {
	Errors []string `json:"errors"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, message string) {
	send(w, code, errorBody{[]string{message}})
}

func send(w http.ResponseWriter, code int, body any) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // plans hold <br/>
	if err := encoder.Encode(body); err != nil {
		slog.Default().Error("an answer cannot be written as JSON", "error", err)
		code = http.StatusInternalServerError
		data.Reset()
		data.WriteString(`{"errors":["Internal server error."]}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(data.Bytes()) // a client that has gone needs no answer
}

// watermark is a watermark in lowwater's own answers: null before the first, "end" behind
// the last, else milliseconds.
type watermark int64

// MarshalJSON implements json.Marshaler.
func (t watermark) MarshalJSON() ([]byte, error) {
	switch int64(t) {
	case eventtime.MinTimestamp:
		return []byte("null"), nil
	case eventtime.MaxTimestamp:
		return []byte(`"end"`), nil
	default:
		return json.Marshal(int64(t))
	}
}

// millis is a time in milliseconds, null if it is zero.
type millis struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t millis) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UnixMilli())
}

// The exceptions that Flink names in its errors.
const (
	notFoundException = "org.apache.flink.runtime.rest.NotFoundException"
	handlerException  = "org.apache.flink.runtime.rest.handler.RestHandlerException"
)

// badPath and badQuery say which part of a request makes no sense.
func badPath(parameter, value string) error {
	return badRequest("%s: Bad request, could not parse parameters: Cannot resolve path parameter (%s) from value \"%s\".",
		handlerException, parameter, value)
}

func badQuery(parameter, value string) error {
	return badRequest("%s: Bad request, could not parse parameters: Cannot resolve query parameter (%s) from value \"%s\".",
		handlerException, parameter, value)
}
