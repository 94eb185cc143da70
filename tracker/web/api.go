package web

import (
	"context"
	_ "embed"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Paths of calls in JSON.
const (
	apiPath    = "/api/v1/"
	schemaPath = apiPath + "openapi.json"
)

// mostBodyBytes bounds the body of a call in JSON; a larger job is submitted over gRPC.
const mostBodyBytes = 4 << 20

// schema is what tells programs which calls there are.
//
//go:embed api/tilth.swagger.json
var schema []byte

// Streams says whether a request is answered for as long as something happens, or for as much as there is. Such a
// request holds one message at a time, and has bounds of its own.
func Streams(r *http.Request) bool {
	return r.URL.Path == LivePath || r.URL.Path == apiPath+"records" || r.URL.Path == apiPath+"records:get" ||
		strings.HasPrefix(r.URL.Path, apiPath+"jobs/") && strings.HasSuffix(r.URL.Path, "/events")
}

// lines is JSON as the wire's messages have it. Streams are a message a line.
type lines struct{ runtime.JSONPb }

// StreamContentType implements runtime.StreamContentType.
func (lines) StreamContentType(any) string { return "application/x-ndjson" }

// newAPI returns a handler of calls in JSON, which makes them over the site's connection as pages do.
func newAPI(cfg Config) http.Handler {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &lines{runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{EmitUnpopulated: true}}}),
		// Names of devices have slashes.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllCharacters),
		// What a call comes with is decided before: its headers tell the services nothing.
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	ctx := context.Background() // of nothing that lasts: what is registered has a connection already
	err := errors.Join(
		tilthv1.RegisterJobServiceHandlerClient(ctx, mux, tilthv1.NewJobServiceClient(cfg.Conn)),
		tilthv1.RegisterAgentServiceHandlerClient(ctx, mux, tilthv1.NewAgentServiceClient(cfg.Conn)),
		tilthv1.RegisterDeviceServiceHandlerClient(ctx, mux, tilthv1.NewDeviceServiceClient(cfg.Conn)),
		tilthv1.RegisterRecordServiceHandlerClient(ctx, mux, tilthv1.NewRecordServiceClient(cfg.Conn)),
		tilthv1.RegisterAdminServiceHandlerClient(ctx, mux, tilthv1.NewAdminServiceClient(cfg.Conn)),
		tilthv1.RegisterArtifactServiceHandlerClient(ctx, mux, tilthv1.NewArtifactServiceClient(cfg.Conn)),
	)
	if err != nil {
		panic(err) // as of templates: what is generated of the wire does not fit together
	}
	return mux
}

// callJSON answers a call in JSON; a refusal too is JSON.
func (s *Site) callJSON(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == schemaPath {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(schema)
		return
	}
	w, end, err := s.admitJSON(w, r)
	if err != nil {
		runtime.DefaultHTTPErrorHandler(r.Context(), runtime.NewServeMux(), &lines{}, w, r, err)
		return
	}
	defer end()
	s.api.ServeHTTP(w, r)
}

// admitJSON checks what a call in JSON comes with, and counts it if it is a stream.
func (s *Site) admitJSON(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func(), error) {
	if err := checkQuery(r); err != nil {
		return w, nil, err
	}
	if err := s.Door.CheckCall(r); err != nil {
		return w, nil, err
	}
	// A form of another site's page cannot say that it is JSON.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost && (err != nil || kind != "application/json") {
		return w, nil, status.Errorf(codes.InvalidArgument, "the content type is %q, not application/json", r.Header.Get("Content-Type"))
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBodyBytes)
	if !Streams(r) {
		return w, func() {}, nil
	}
	end, ok := s.streams.begin(asker(r))
	if !ok {
		return w, nil, status.Error(codes.Unavailable, "there are too many streams: end one, or try again")
	}
	p := patient{w, http.NewResponseController(w)}
	_ = p.c.SetReadDeadline(time.Time{}) // that of a request would end the stream
	return p, end, nil
}

// patient is an answer that lasts, of which each part must be taken in time.
type patient struct {
	http.ResponseWriter
	c *http.ResponseController
}

// Write implements http.ResponseWriter.
func (p patient) Write(b []byte) (int, error) {
	_ = p.c.SetWriteDeadline(time.Now().Add(streamStall))
	return p.ResponseWriter.Write(b)
}

// Unwrap has the controller find what it controls.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
