package tvm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/tuning/seeds"
)

// Format is a kind of log.
type Format string

// The formats.
const (
	AutoTVM Format = "autotvm"
	Ansor   Format = "ansor"
)

// Formats are all of them.
var Formats = []Format{AutoTVM, Ansor}

// Bounds of what is read.
const (
	mostLineBytes = 1 << 20
	mostLogBytes  = 2 << 30
	mostOperators = 4096
)

// Log is what was read of a log.
type Log struct {
	// Lines are those that tell a measurement, or should, and Taken those that are seeds.
	Lines, Taken int
	Refused      []Refused
	// Entries are the fastest seeds of each operator, in the order of their first lines.
	Entries []seeds.Entry
}

// Err says why a log has no seeds; nil when it has some.
func (l *Log) Err() error {
	switch {
	case len(l.Entries) > 0:
		return nil
	case len(l.Refused) == 0:
		return errors.New("the log has no lines")
	}
	r := l.Refused[0]
	return fmt.Errorf("none of the log's lines, of which there are %d, is a seed: of %d the reason is: %s (first line %d: %s)",
		l.Lines, r.Count, r.Reason, r.Line, r.Detail)
}

// Read reads a log, which may be compressed with gzip. A line that is no seed is counted and passed over; the error
// says that the log could not be read to its end, or is larger than 2 GiB.
func Read(r io.Reader, format Format) (*Log, error) {
	parse := map[Format]func([]byte) (*measured, error){AutoTVM: parseAutoTVM, Ansor: parseAnsor}[format]
	if parse == nil {
		return nil, fmt.Errorf("format %q: want one of %v", format, Formats)
	}
	in, err := plain(r)
	if err != nil {
		return nil, err
	}
	b := &builder{format: format, refused: refusals{}, at: map[string]*operator{}}
	lines := bufio.NewReaderSize(in, 64<<10)
	read := int64(0)
	for number := 1; ; number++ {
		line, size, err := readLine(lines)
		if read += size; read > mostLogBytes {
			return nil, fmt.Errorf("the log has more than %d GiB: split it", mostLogBytes>>30)
		}
		if size > 0 {
			b.line(number, line, size, parse)
		}
		if errors.Is(err, io.EOF) {
			return b.log()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// plain is a log without its compression.
func plain(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) { // too short a log is none that is compressed
		return in, nil
	}
	return gzip.NewReader(in)
}

// readLine is the next line and its size; no more of it than mostLineBytes and one is kept.
func readLine(in *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		line = append(line, part[:min(len(part), mostLineBytes+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// measured is a line that tells a schedule.
type measured struct {
	// key tells operators apart, which make makes, one for each meaning that the line may have.
	key     string
	make    func() ([]*seeds.Operator, error)
	tiling  space.Tiling
	seconds float64
}

// builder collects the seeds of a log.
type builder struct {
	format  Format
	lines   int
	taken   int
	refused refusals
	at      map[string]*operator
	order   []*operator
}

// operator is what the lines of a log say of one.
type operator struct {
	entry seeds.Entry
	best  []timed
	err   error
}

// timed is a tiling with its latency, which orders tilings of a log and is not kept.
type timed struct {
	tiling  space.Tiling
	seconds float64
}

func (b *builder) line(number int, line []byte, size int64, parse func([]byte) (*measured, error)) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' { // TVM passes over these, too
		return
	}
	b.lines++
	err := b.seed(line, size, parse)
	var why *refusal
	switch {
	case err == nil:
		b.taken++
	case errors.As(err, &why):
		b.refused.add(number, why)
	default:
		b.refused.add(number, &refusal{OutOfBounds, printable(err.Error())})
	}
}

func (b *builder) seed(line []byte, size int64, parse func([]byte) (*measured, error)) error {
	if size > mostLineBytes {
		return refuse(TooLong, "%d bytes, of at most %d", size, mostLineBytes)
	}
	m, err := parse(line)
	if err != nil {
		return err
	}
	if err := m.tiling.Valid(); err != nil {
		return refuse(Malformed, "%v", err)
	}
	o := b.at[m.key]
	if o == nil {
		if len(b.at) == mostOperators {
			return refuse(TooManyOthers, "of at most %d", mostOperators)
		}
		o = b.operator(m)
	}
	if o.err != nil {
		return o.err
	}
	o.add(timed{m.tiling, m.seconds})
	return nil
}

func (b *builder) operator(m *measured) *operator {
	o := &operator{entry: seeds.Entry{From: string(b.format)}}
	b.at[m.key] = o
	meanings, err := m.make()
	if err != nil {
		o.err = err
		return o
	}
	for _, meaning := range meanings {
		var anchors []string
		if anchors, err = meaning.Anchors(); err != nil {
			break
		}
		o.entry.Operator = meaning.String()
		for _, a := range anchors {
			if !slices.Contains(o.entry.Anchors, a) {
				o.entry.Anchors = append(o.entry.Anchors, a)
			}
		}
	}
	if o.err = err; err == nil {
		b.order = append(b.order, o)
	}
	return o
}

// add keeps the fastest tilings, each once.
func (o *operator) add(t timed) {
	if at := slices.IndexFunc(o.best, func(b timed) bool { return b.tiling == t.tiling }); at >= 0 {
		if o.best[at].seconds <= t.seconds {
			return
		}
		o.best = slices.Delete(o.best, at, at+1)
	}
	at := slices.IndexFunc(o.best, func(b timed) bool { return b.seconds > t.seconds })
	if at < 0 {
		at = len(o.best)
	}
	o.best = slices.Insert(o.best, at, t)
	o.best = o.best[:min(seeds.PerOperator, len(o.best))]
}

func (b *builder) log() (*Log, error) {
	l := &Log{Lines: b.lines, Taken: b.taken, Refused: b.refused.list()}
	for _, o := range b.order {
		for _, t := range o.best {
			o.entry.Tilings = append(o.entry.Tilings, t.tiling)
		}
		l.Entries = append(l.Entries, o.entry)
	}
	return l, nil
}

// gpus are the kinds of targets, and keys of their descriptions, that are GPUs.
var gpus = []string{"cuda", "nvptx", "rocm", "opencl", "vulkan", "metal", "webgpu"}

// checkTarget refuses what was not measured on a processor by way of LLVM, or of C.
func checkTarget(text string) error {
	kind, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.HasPrefix(kind, "{") { // a description in JSON, whose order of keys is any
		kind = kindOf(text)
	}
	switch {
	case kind == "llvm" || kind == "c":
		return nil
	case slices.Contains(gpus, kind):
		return refuse(GPUTarget, "%s", kind)
	}
	return refuse(OtherTarget, "%s", kind)
}
