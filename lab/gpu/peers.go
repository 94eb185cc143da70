package gpu

import (
	"cmp"
	"context"
	_ "embed" // for the program
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/tilth-dev/tilth/lab/bench"
)

//go:embed peers.py
var peersProgram string

// question is a request to peers: the seconds of a product or a model, or readiness.
type question struct {
	What  string `json:"what"`
	Ready bool   `json:"ready,omitempty"`
	M     int64  `json:"m,omitempty"`
	K     int64  `json:"k,omitempty"`
	N     int64  `json:"n,omitempty"`
	Name  string `json:"name,omitempty"`
	Batch int64  `json:"batch,omitempty"`
	DType string `json:"dtype"`
	TF32  bool   `json:"tf32"`
}

// answer sends a question to the peers and starts their process if necessary.
func (b *suite) answer(ctx context.Context, q question) (reply, error) {
	if b.python == "" {
		return reply{}, errors.New("nothing was to be compared with")
	}
	if b.peers == nil {
		p, err := startPeers(b.python, b.path("peers.log"))
		if err != nil {
			return reply{}, err
		}
		b.peers = p
	}
	stop := context.AfterFunc(ctx, b.peers.Kill)
	defer stop()
	said, err := askPeers(b.peers, q)
	if err != nil {
		b.close()
		return reply{}, err
	}
	return said, said.refusal()
}

// versions returns the versions of the peers, or "".
func (b *suite) versions(ctx context.Context) string {
	said, err := b.answer(ctx, question{What: "versions"})
	if err != nil {
		return ""
	}
	return said.Versions
}

// startPeers starts a Python process with PyTorch, which caches its compilations. The verbose output of PyTorch's
// compiler goes to a file.
func startPeers(python, log string) (*bench.Peer, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command(python, "-u", "-c", peersProgram)
	cmd.Stderr, cmd.WaitDelay = file, time.Second
	return bench.Start("PyTorch", cmd)
}

// reply is an answer of the peers.
type reply struct {
	Seconds float64 `json:"seconds"`
	// Way is how the work is submitted: launch by launch, or as a graph.
	Way      string `json:"way"`
	Ready    bool   `json:"ready"`
	Versions string `json:"versions"`
	// Missing is the reason why there are no peers. Error is the reason why a question failed.
	Missing string `json:"missing"`
	Error   string `json:"error"`
}

func (r reply) refusal() error {
	if text := cmp.Or(r.Missing, r.Error); text != "" {
		return errors.New(text)
	}
	return nil
}

// askPeers returns the answer to a question.
func askPeers(p *bench.Peer, q question) (said reply, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return said, err
	}
	text, err := p.Ask(string(line))
	for ; err == nil; text, err = p.Read() {
		// Libraries may print other lines.
		if json.Unmarshal([]byte(text), &said) == nil && said != (reply{}) {
			return said, nil
		}
		said = reply{}
	}
	return said, err
}
