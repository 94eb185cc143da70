package web

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Paths of the JSON API.
const (
	apiPath    = "/api/v1/"
	schemaPath = apiPath + "openapi.json"
)

// MaxBodyBytes bounds the body of a JSON call. Larger jobs must be submitted over gRPC.
const MaxBodyBytes = 4 << 20

// schema is the OpenAPI description.
//
//go:embed api/tilth.swagger.json
var schema []byte

// Streams reports whether the response to a request is a stream. A stream holds one message at a time and has limits
// of its own.
func Streams(r *http.Request) bool {
	return r.URL.Path == LivePath || r.URL.Path == tunePath || strings.HasPrefix(r.URL.Path, "/jobs/") && strings.Contains(r.URL.Path, "/packages/") ||
		r.URL.Path == apiPath+"records" || r.URL.Path == apiPath+"records:get" ||
		strings.HasPrefix(r.URL.Path, apiPath+"jobs/") && strings.HasSuffix(r.URL.Path, "/events")
}

// lines marshals messages as JSON. In streams, each message is a line.
type lines struct {
	runtime.JSONPb
}

// NewDecoder implements runtime.Marshaler. It checks a message's bounds before it decodes it.
func (l *lines) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		text, err := io.ReadAll(r)
		if err != nil || len(text) == 0 {
			return cmp.Or(err, io.EOF)
		}
		if m, is := v.(proto.Message); is && wire.CheckJSON(m, text) != nil {
			return errors.New(status.Convert(wire.CheckJSON(m, text)).Message())
		}
		return l.Unmarshal(text, v)
	})
}

// StreamContentType implements runtime.StreamContentType.
func (lines) StreamContentType(any) string { return "application/x-ndjson" }

// newAPI returns the handler of the JSON API. It calls the services over the site's connection, like the pages.
func newAPI(cfg Config) http.Handler {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard,
			&lines{runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{EmitUnpopulated: true}}}),
		// The call is refused by its role; until then nothing is decoded for a caller without it.
		runtime.WithMetadata(func(ctx context.Context, r *http.Request) metadata.MD {
			if method, _ := runtime.RPCMethod(ctx); !cfg.Auth.HasRole(r, method) {
				_, _ = io.Copy(io.Discard, r.Body) // so that the answer is read
			}
			return nil
		}),
		// Device names contain slashes.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllCharacters),
		// Callers are authenticated before; the services ignore HTTP headers.
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	ctx := context.Background() // not used: registration needs no dialing
	err := errors.Join(
		tilthv1.RegisterJobServiceHandlerClient(ctx, mux, tilthv1.NewJobServiceClient(cfg.Conn)),
		tilthv1.RegisterAgentServiceHandlerClient(ctx, mux, tilthv1.NewAgentServiceClient(cfg.Conn)),
		tilthv1.RegisterDeviceServiceHandlerClient(ctx, mux, tilthv1.NewDeviceServiceClient(cfg.Conn)),
		tilthv1.RegisterRecordServiceHandlerClient(ctx, mux, tilthv1.NewRecordServiceClient(cfg.Conn)),
		tilthv1.RegisterAdminServiceHandlerClient(ctx, mux, tilthv1.NewAdminServiceClient(cfg.Conn)),
		tilthv1.RegisterArtifactServiceHandlerClient(ctx, mux, tilthv1.NewArtifactServiceClient(cfg.Conn)),
	)
	if err != nil {
		panic(err) // a bug in the generated code
	}
	return mux
}

// callJSON serves a JSON call. Errors are JSON as well.
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

// admitJSON validates a JSON call and, if it is a stream, counts it.
func (s *Site) admitJSON(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func(), error) {
	if err := checkQuery(r); err != nil {
		return w, nil, err
	}
	if err := s.Auth.CheckCall(r); err != nil {
		return w, nil, err
	}
	// A form on another site cannot send this content type.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost && (err != nil || kind != "application/json") {
		return w, nil, status.Errorf(codes.InvalidArgument, "the content type is %q, not application/json", r.Header.Get("Content-Type"))
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	if !Streams(r) {
		return w, func() {}, nil
	}
	end, ok := s.streams.begin(asker(r))
	if !ok {
		return w, nil, status.Error(codes.Unavailable, "there are too many streams: end one, or try again")
	}
	p := deadlineWriter{w, http.NewResponseController(w)}
	if r.Method == http.MethodPost { // the read deadline is that of the body
		text, err := io.ReadAll(r.Body)
		if err != nil {
			end()
			return w, nil, status.Errorf(codes.InvalidArgument, "the body: %v", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
	_ = p.c.SetReadDeadline(time.Time{}) // the request's deadline would end the stream
	return p, end, nil
}

// deadlineWriter is a long response in which each write has a deadline of its own.
type deadlineWriter struct {
	http.ResponseWriter
	c *http.ResponseController
}

// Write implements http.ResponseWriter.
func (p deadlineWriter) Write(b []byte) (int, error) {
	_ = p.c.SetWriteDeadline(time.Now().Add(streamStall))
	return p.ResponseWriter.Write(b)
}

// Unwrap implements the contract of http.ResponseController.
func (p deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
