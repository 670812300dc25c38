package rest

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// failureCause is an error in the shape in which Flink's clients read one. They insist on
// an object of Java's serialization in it.
type failureCause struct {
	Class      string `json:"class"`
	StackTrace string `json:"stack-trace"`
	Serialized string `json:"serialized-throwable"`
}

func newFailureCause(err error) *failureCause {
	class, trace := exceptionName(err), stackTrace(err)
	return &failureCause{class, trace, base64.StdEncoding.EncodeToString(serializedThrowable(class, err.Error(), trace))}
}

// exceptionName is the type of the error at the bottom of err.
func exceptionName(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
	if name == "errors.errorString" || name == "fmt.wrapErrors" || name == "errors.joinError" {
		return "error"
	}
	return name
}

// stackTrace is all that an error says; panics say where.
func stackTrace(err error) string { return fmt.Sprintf("%+v", err) }

// throwableHead is the beginning of an org.apache.flink.util.SerializedThrowable that has
// no cause: the magic number, the descriptions of its class and of those above it. The
// versions of classes are Flink's and Java's.
const throwableHead = "\xac\xed\x00\x05sr\x00)org.apache.flink.util.SerializedThrowablee\x16\x9d\xf5\x1f\xa7\x13\xf3\x02\x00\x03" +
	"L\x00\x19fullStringifiedStackTracet\x00\x12Ljava/lang/String;L\x00\x16originalErrorClassNameq\x00~\x00\x01" +
	"[\x00\x13serializedExceptiont\x00\x02[B" +
	"xr\x00\x13java.lang.Exception\xd0\xfd\x1f>\x1a;\x1c\xc4\x02\x00\x00" +
	"xr\x00\x13java.lang.Throwable\xd5\xc65'9w\xb8\xcb\x03\x00\x04L\x00\x05causet\x00\x15Ljava/lang/Throwable;" +
	"L\x00\rdetailMessageq\x00~\x00\x01[\x00\nstackTracet\x00\x1e[Ljava/lang/StackTraceElement;" +
	"L\x00\x14suppressedExceptionst\x00\x10Ljava/util/List;xp"

// serializedThrowable writes an error as Java would.
func serializedThrowable(class, message, trace string) []byte {
	b := []byte(throwableHead)
	b = append(b, "q\x00~\x00\x08"...) // its own cause, that is none
	b = appendJavaString(b, message)
	b = append(b, "ppx"...) // no frames, nothing suppressed, end of Throwable's part
	b = appendJavaString(b, trace)
	b = appendJavaString(b, class)
	return append(b, 'p') // no serialized exception
}

// maxJavaString keeps texts within what a length of 16 bits can say.
const maxJavaString = 16 << 10

// appendJavaString writes a string object in Java's modified UTF-8.
func appendJavaString(b []byte, s string) []byte {
	if len(s) > maxJavaString {
		s = s[:maxJavaString]
	}
	var text []byte
	for _, c := range utf16.Encode([]rune(s)) {
		switch {
		case c != 0 && c < 0x80:
			text = append(text, byte(c))
		case c < 0x800:
			text = append(text, 0xc0|byte(c>>6), 0x80|byte(c&0x3f))
		default:
			text = append(text, 0xe0|byte(c>>12), 0x80|byte(c>>6&0x3f), 0x80|byte(c&0x3f))
		}
	}
	b = append(b, 't')
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}
