package staticsite

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/signing"
)

// Time limits of a server: for connecting and the start of a response, and for the rest by its size.
const (
	answerTime     = 30 * time.Second
	slowestPerTime = 32 << 10 // bytes per second
	maxRedirects   = 3
)

// ServerOptions configures access to a server.
type ServerOptions struct {
	// TLS is the client's TLS configuration; nil uses the system's authorities.
	TLS *tls.Config
	// AllowHTTP permits plain HTTP to remote servers, which anyone on the path can modify.
	AllowHTTP bool
	// Cache is a folder for fetched chunks. CacheBytes bounds it; 0 means 1 GiB.
	Cache      string
	CacheBytes int64
	// AnswerTime bounds the time until a response starts; 0 means 30 s.
	AnswerTime time.Duration
}

// Server is an export on a web server, with a cache for its chunks.
type Server struct {
	base   *url.URL
	client *http.Client
	cache  *filesystem.LRUDir
	answer time.Duration
}

// NewServer returns the export at an address, https://HOST/PATH. It does not connect yet.
func NewServer(address string, o ServerOptions) (*Server, error) {
	base, err := url.Parse(strings.TrimSuffix(address, IndexName))
	if err != nil || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("the address of an export of records is https://HOST/PATH")
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	if base.Scheme != "https" && (base.Scheme != "http" || !o.AllowHTTP && !loopback(base.Hostname())) {
		return nil, fmt.Errorf("records at %s: anybody on the way could change them: use https, or --allow-http", base.Redacted())
	}
	cache, err := filesystem.OpenLRU(o.Cache, max(o.CacheBytes, 0))
	if err != nil {
		return nil, fmt.Errorf("%w: set XDG_CACHE_HOME", err)
	}
	s := &Server{base: base, cache: cache, answer: cmp.Or(o.AnswerTime, answerTime)}
	s.client = &http.Client{
		CheckRedirect: s.checkRedirect,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true,
			DialContext:         (&net.Dialer{Timeout: s.answer}).DialContext,
			TLSHandshakeTimeout: s.answer, ResponseHeaderTimeout: s.answer, IdleConnTimeout: s.answer,
			MaxIdleConnsPerHost: fetchedAtOnce, MaxConnsPerHost: fetchedAtOnce, MaxResponseHeaderBytes: 64 << 10,
			DisableCompression: true, // files are compressed already, and bounded by their size
		},
	}
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Name implements Files.
func (s *Server) Name() string { return s.base.Redacted() }

// checkRedirect permits redirects only within the same server.
func (s *Server) checkRedirect(to *http.Request, via []*http.Request) error {
	if to.URL.Scheme != s.base.Scheme || to.URL.Host != s.base.Host {
		return fmt.Errorf("it sends readers to another server, %s://%s: name that one if you trust it", to.URL.Scheme, to.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("it sends readers elsewhere more than %d times", maxRedirects)
	}
	return nil
}

// Index implements Files.
func (s *Server) Index(ctx context.Context) (text []byte, err error) {
	err = s.get(ctx, IndexName, maxIndexBytes, func(body io.Reader) error {
		text, err = readBounded(body, maxIndexBytes)
		return err
	})
	return text, err
}

// Signature implements Files.
func (s *Server) Signature(ctx context.Context) (text []byte, err error) {
	err = s.get(ctx, IndexName+signing.Suffix, maxSignatureBytes, func(body io.Reader) error {
		text, err = readBounded(body, maxSignatureBytes)
		return err
	})
	return text, err
}

// Chunk implements Files.
func (s *Server) Chunk(ctx context.Context, c Chunk) (*os.File, error) {
	name := c.Digest + chunkSuffix
	if s.cache.Touch(name) {
		if file, err := openVerified(s.cache.Path(name), c); err == nil {
			return file, nil
		}
	}
	file, err := os.CreateTemp(s.cache.Path(""), partPrefix)
	if err != nil {
		return nil, err
	}
	err = s.get(ctx, c.name(), c.SizeBytes, func(body io.Reader) error {
		_, err := io.Copy(file, io.LimitReader(body, c.SizeBytes+1))
		return err
	})
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = c.verify(file)
	}
	if err == nil {
		err = s.keep(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// keep moves a file into the cache. A full cache may already have dropped the file, which does not affect its reader.
func (s *Server) keep(part, name string) error {
	if err := os.Rename(part, s.cache.Path(name)); err != nil && !isMissing(err) {
		return err
	}
	return s.cache.Evict(name)
}

// get calls read with the body of a file of about sizeBytes.
func (s *Server) get(ctx context.Context, name string, sizeBytes int64, read func(body io.Reader) error) error {
	within := 2*s.answer + time.Duration(sizeBytes/slowestPerTime)*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, within, errSlow)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base.ResolveReference(&url.URL{Path: name}).String(), nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(req)
	if err != nil {
		return explain(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return statusError(response.StatusCode)
	}
	return explain(ctx, read(response.Body))
}

var errSlow = errors.New("it takes too long to answer: check the connection, and try again")

// statusError explains an HTTP status other than OK.
func statusError(code int) error {
	switch code {
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("not found on the server (%d): check the address, and that 'tilth records export --static' wrote the folder", code)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the server denies access (%d): ask its operator", code)
	}
	return fmt.Errorf("the server answers %d %s: try again later", code, http.StatusText(code))
}

// explain replaces the errors of network libraries by messages that name the cause and the remedy.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var slow net.Error
	if errors.Is(context.Cause(ctx), errSlow) || errors.As(err, &slow) && slow.Timeout() {
		return errSlow
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if call, is := errors.AsType[*url.Error](err); is {
		err = call.Err
	}
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("the server's certificate is signed by an unknown authority: name its authorities with --tls-ca: %w", err)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("the server's certificate is not valid for it: check the address: %w", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the server does not speak TLS: check the address and its port: %w", err)
	case errors.As(err, new(*net.DNSError)):
		return fmt.Errorf("the server's host name is not known: check its spelling, and DNS: %w", err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server ended the connection: try again: %w", err)
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
		return fmt.Errorf("the server cannot be reached: check that it runs: %w", err)
	}
	return err
}
