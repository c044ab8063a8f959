package main

import (
	"context"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// newRetryFactory makes the extension `retry`, a middleware for exporters, which has no settings. The protocol has a
// client drop what a server answers with an error such as 401, 404 or 500: a token that has ended, or a proxy in front
// of a server that is away, would cost logs. With it such answers are retried as well, and only what the server says to
// be wrong with the data is dropped.
func newRetryFactory() extension.Factory {
	return extension.NewFactory(component.MustNewType("retry"), func() component.Config { return &struct{}{} },
		func(_ context.Context, set extension.Settings, _ component.Config) (extension.Extension, error) {
			return &retry{logger: set.Logger}, nil
		}, component.StabilityLevelStable)
}

type retry struct {
	component.StartFunc
	component.ShutdownFunc
	logger *zap.Logger
}

var (
	_ extensionmiddleware.HTTPClient = (*retry)(nil)
	_ extensionmiddleware.GRPCClient = (*retry)(nil)
)

func (r *retry) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(_ context.Context, next http.RoundTripper) (http.RoundTripper, error) {
		return roundTripper{r, next}, nil
	}, nil
}

type roundTripper struct {
	*retry
	next http.RoundTripper
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err != nil || answer.StatusCode < 400 {
		return answer, err
	}
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		// What is wrong is the data.
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// Retried anyway, and at the time that the server names.
	default:
		r.logger.Warn("the server refuses logs; they are kept and sent again", zap.String("answer", answer.Status))
		answer.StatusCode = http.StatusBadGateway
	}
	return answer, nil
}

func (r *retry) GetGRPCClientOptions(context.Context) ([]grpc.DialOption, error) {
	call := func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, next grpc.UnaryInvoker,
		options ...grpc.CallOption) error {
		err := next(ctx, method, request, reply, connection, options...)
		switch status.Code(err) {
		case codes.Unauthenticated, codes.PermissionDenied, codes.NotFound, codes.Unimplemented, codes.Unknown,
			codes.Internal, codes.FailedPrecondition:
			r.logger.Warn("the server refuses logs; they are kept and sent again", zap.Error(err))
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(call)}, nil
}
