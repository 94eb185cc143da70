package tracker

import (
	"net/http"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/tracker/web"
)

// HTTPHandler serves what the tracker serves over HTTP, without a listener.
func (t *Tracker) HTTPHandler() http.Handler {
	h := t.alone()
	return h.gate.HTTP(h.pages(), web.Public()...)
}

// NewServer returns the server of the tracker's calls.
func (t *Tracker) NewServer() *grpc.Server { return t.alone().newServer() }
