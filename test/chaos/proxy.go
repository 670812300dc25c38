package main

import (
	"errors"
	"io"
	"net"
	"sync"
)

// proxy is the network between the job and the broker.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns map[net.Conn]bool
	// down refuses connections; hold, if not nil, is closed when bytes may pass again.
	down bool
	hold chan struct{}
}

func newProxy(address, target string) (*proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(in, out) {
			closeAll(in, out)
			continue
		}
		go p.copy(in, out)
		go p.copy(out, in)
	}
}

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if n > 0 {
			if _, werr := to.Write(buffer[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			break
		}
	}
	closeAll(to, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// wait holds bytes back while the network is cut.
func (p *proxy) wait() {
	p.mu.Lock()
	hold := p.hold
	p.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// cut breaks all connections and refuses new ones, or, silently, lets nothing through.
func (p *proxy) cut(silently bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if silently {
		p.hold = make(chan struct{})
		return
	}
	p.down = true
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	if p.hold != nil {
		close(p.hold)
		p.hold = nil
	}
}

func (p *proxy) close() error {
	p.restore()
	err := p.listener.Close()
	p.cut(false)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
