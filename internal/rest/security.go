package rest

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/lowwater/lowwater/web"
)

// validate refuses settings that cannot work or that expose jobs.
func (c *Config) validate() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("REST server: address %q: must be host:port, such as %s", c.Addr, DefaultAddr)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("REST server: TLS needs both a certificate file and a key file")
	}
	for _, origin := range c.AllowedOrigins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			return fmt.Errorf("REST server: allowed origin %q: must be scheme://host or scheme://host:port", origin)
		}
	}
	if c.NeedsToken && c.Token == "" {
		return errors.New("REST server: the token is empty: was it read from a variable that is not set? Leave RESTToken out for a server that needs none")
	}
	if strings.TrimSpace(c.Token) != c.Token || strings.ContainsFunc(c.Token, unicode.IsControl) {
		// No header can bring it. The message does not repeat it.
		return errors.New("REST server: the token begins or ends with white space, or has a control character: was it read with the end of its line?")
	}
	if !isLoopback(host) && c.Token == "" && c.CertFile == "" {
		return fmt.Errorf("REST server: refusing to listen on %s: whoever reaches that address could see and cancel jobs. "+
			"Listen on a loopback address such as %s, or set a token, or TLS", c.Addr, DefaultAddr)
	}
	return nil
}

// isLoopback reports whether host can only be reached from this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// guard lets through what may be answered.
func (c *Config) guard(next http.Handler) http.Handler {
	host, _, _ := net.SplitHostPort(c.Addr)
	loopback := isLoopback(host)
	token := sha256.Sum256([]byte(c.Token))
	// State is changed by requests that browsers only send across origins with a header
	// that says so. There are no cookies.
	origins := http.NewCrossOriginProtection()
	for _, origin := range c.AllowedOrigins {
		_ = origins.AddTrustedOrigin(origin) // validated
	}
	bodies, slots := make(chan struct{}, maxBodies), make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		if loopback && c.Token == "" && !isLoopback(hostOf(r)) {
			// A page whose name was made to point here would otherwise read everything.
			refuse(w, http.StatusForbidden, fmt.Sprintf("The host %q is not this machine's: use localhost or 127.0.0.1.", hostOf(r)))
			return
		}
		if len(c.AllowedOrigins) > 0 {
			header.Add("Vary", "Origin") // a cache must not give the answer for one to another
		}
		if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(c.AllowedOrigins, origin) {
			header.Set("Access-Control-Allow-Origin", origin)
			if r.Method == http.MethodOptions {
				header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if c.Token != "" && !isPage(r) && !authorized(r, token) {
			// Basic is understood, but not asked for: browsers would show a dialog of their own
			// over the UI's form.
			header.Set("WWW-Authenticate", `Bearer realm="lowwater"`)
			refuse(w, http.StatusUnauthorized, "A token is needed: send the header Authorization: Bearer TOKEN.")
			return
		}
		if err := origins.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "The request comes from a page of another server, which may not change anything here.")
			return
		}
		if r.ContentLength != 0 {
			// A slow client has a place among those that send, and none among those that
			// are answered.
			if !take(bodies, w) {
				return
			}
			ok := receiveBody(w, r)
			<-bodies
			if !ok {
				return
			}
		}
		if !take(slots, w) {
			return
		}
		defer func() { <-slots }()
		next.ServeHTTP(w, r)
	})
}

// take takes a place among requests, or refuses the request if there is none.
func take(places chan struct{}, w http.ResponseWriter) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // or its body would be waited for
		refuse(w, http.StatusServiceUnavailable, "Too many requests at the same time: try again.")
		return false
	}
}

// receiveBody reads the body of a request into memory. It refuses one that is too large or
// takes too long.
func receiveBody(w http.ResponseWriter, r *http.Request) bool {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // it can, on a server's connection
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", tooLarge.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, fmt.Sprintf("The body has not come within %v.", bodyTimeout))
	case err != nil:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, "The body cannot be read: "+err.Error())
	default:
		_ = connection.SetReadDeadline(time.Now().Add(requestTimeout))
		r.Body = io.NopCloser(bytes.NewReader(data))
	}
	return err == nil
}

// hostOf returns the name that the client took for this server.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
}

// isPage reports whether r asks for a file of the Web UI. Those are the same everywhere and
// tell nothing of jobs; the form that asks for the token is in them.
func isPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && web.Has(r.URL.Path)
}

// authorized reports whether r brings the token: as a bearer token or, for
// clients that only know Basic, as the password of any user.
func authorized(r *http.Request, token [sha256.Size]byte) bool {
	scheme, brought, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") { // in which the case does not matter
		_, brought, ok = r.BasicAuth()
	}
	sum := sha256.Sum256([]byte(brought)) // of one length whatever was brought
	return subtle.ConstantTimeCompare(sum[:], token[:]) == 1 && ok
}
