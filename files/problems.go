package files

import (
	"errors"
	"fmt"
	"time"
)

// problems collects what is wrong with the options of one source or sink.
type problems struct {
	of   string
	errs []error
}

func (p *problems) add(option, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", p.of, option, fmt.Sprintf(format, args...)))
}

func (p *problems) err() error { return errors.Join(p.errs...) }

func (p *problems) notNegative(option string, d time.Duration) {
	if d < 0 {
		p.add(option, "%v is negative", d)
	}
}
