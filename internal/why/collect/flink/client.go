package flink

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// largestAnswer bounds what is read of an answer. The metric names of a vertex with
	// a thousand subtasks are some 20 MB.
	largestAnswer = 64 << 20
	// largestError bounds what is read of an answer that is an error.
	largestError   = 64 << 10
	defaultTimeout = 10 * time.Second
)

// Options says how to reach a cluster.
type Options struct {
	// URL is that of the REST API, such as http://localhost:8081. A path in it is kept, for
	// clusters behind a proxy.
	URL string
	// Token is sent as a bearer token unless it is empty. It appears in no error.
	Token string
	TLS   *tls.Config
	// Timeout bounds each request; 0 is 10 s.
	Timeout time.Duration
	// Dial connects; nil is TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client asks a cluster. Its methods may be called from any goroutine.
type Client struct {
	base    *url.URL
	token   string
	timeout time.Duration
	http    *http.Client
	// primeWait is how long the cluster gets to fetch metrics from its TaskManagers after
	// it was asked for them.
	primeWait time.Duration
}

// NewClient returns a client. It does not connect.
func NewClient(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a REST API: want http://host:port or https://host:port", redact(o.URL))
	}
	c := &Client{base: base, token: o.Token, timeout: o.Timeout, primeWait: 1200 * time.Millisecond}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.TLS
	if o.Dial != nil {
		transport.DialContext = o.Dial
	}
	transport.MaxIdleConnsPerHost = parallelRequests
	c.http = &http.Client{
		Transport: transport,
		// A token must not follow a redirect to another host, nor out of TLS.
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
				return errors.New("the cluster redirects from https to http, which is not followed")
			}
			if r.URL.Host != via[0].URL.Host {
				return errors.New("the cluster redirects to another host; give that as the URL")
			}
			if len(via) > 5 {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
	return c, nil
}

// redact removes what may be secret from a text that is no URL: what is before the last @,
// and a query. If the @ may be in the query, nothing is left.
func redact(s string) string {
	at, query := strings.LastIndexByte(s, '@'), strings.IndexAny(s, "?#")
	switch {
	case at < 0 && query < 0:
		return s
	case at < 0:
		return s[:query] + "…"
	case query < 0:
		return "…" + s[at:]
	case query < at:
		return "…"
	}
	return "…" + s[at:query] + "…"
}

// String is the URL without what may be secret: user, password, query and fragment.
func (c *Client) String() string {
	u := *c.base
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// AnswerError is an answer that is an error.
type AnswerError struct {
	Status  int
	Message string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
}

// isNotFound reports whether the server has answered that there is no such thing.
func isNotFound(err error) bool {
	var answer *AnswerError
	return errors.As(err, &answer) && answer.Status == http.StatusNotFound
}

// get asks for path, which begins with a slash and is encoded, and decodes the answer.
func (c *Client) get(ctx context.Context, path, query string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	u := *c.base
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+path, ""
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.reason(ctx, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", path, answerError(resp))
	}
	body := &io.LimitedReader{R: resp.Body, N: largestAnswer}
	if err := json.NewDecoder(body).Decode(into); err != nil {
		if body.N == 0 {
			return fmt.Errorf("%s: the answer is larger than %d MB", path, largestAnswer>>20)
		}
		return c.reason(ctx, path, fmt.Errorf("the answer is not what Flink sends: %w", err))
	}
	return nil
}

// reason makes an error of a request short: without the URL, which may be long.
func (c *Client) reason(ctx context.Context, path string, err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", c.timeout)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// answerError reads the message out of {"errors": ["class: message\n\tat stack"]}.
func answerError(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, largestError))
	var answer struct{ Errors []string }
	message := http.StatusText(resp.StatusCode)
	if json.Unmarshal(body, &answer) == nil && len(answer.Errors) > 0 {
		message, _, _ = strings.Cut(answer.Errors[0], "\n")
		if class, rest, ok := strings.Cut(message, ": "); ok && strings.Contains(class, ".") && !strings.Contains(class, " ") {
			message = rest
		}
	}
	return &AnswerError{Status: resp.StatusCode, Message: message}
}
