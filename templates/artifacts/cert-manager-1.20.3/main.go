// Command cert-manager runs one of cert-manager's own controller, cainjector and webhook.
//
// cert-manager has its commands in modules that are never released, so the module proxy serves only what they are made of.
// This program starts the same parts in the same order. All settings are in one argument, which is what upstream's commands
// read from the file of --config; of its fields, those of profiling and of TLS for metrics have no effect. The path of this
// module lies below that of cert-manager, whose internal packages it needs.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cert-manager/cert-manager/internal/apis/config/webhook/validation"
	"github.com/cert-manager/cert-manager/internal/cmd/util"
	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	version "github.com/cert-manager/cert-manager/pkg/util"
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"
	webhookfile "github.com/cert-manager/cert-manager/pkg/webhook/configfile"
	"github.com/cert-manager/cert-manager/pkg/webhook/server"
	// The image has no certificates of authorities: those of ACME servers are judged by these.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// labels are on all that these programs make for themselves, as on the addon's other objects: by them it is found when the
// addon is switched off.
var labels = map[string]string{"app.kubernetes.io/managed-by": "turnup", "turnup.dev/addon": "cert-manager"}

var programs = map[string]func(ctx context.Context, configuration []byte) error{
	"controller": runController,
	"cainjector": runCAInjector,
	"webhook":    runWebhook,
}

func main() {
	ctx, exit := util.SetupExitHandler(context.Background(), util.GracefulShutdown)
	defer exit() // It may end the process, so it is the last to run.
	logf.InitLogs()
	defer logf.FlushLogs()

	if len(os.Args) != 3 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cert-manager controller|cainjector|webhook CONFIGURATION")
		util.SetExitCodeValue(2)
		return
	}
	name := os.Args[1]
	ctx = logf.NewContext(ctx, logf.Log, name)
	info := version.VersionInfo()
	logf.FromContext(ctx).Info("starting cert-manager", "program", name, "version", info.GitVersion, "go", info.GoVersion)
	if err := programs[name](ctx, []byte(os.Args[2])); err != nil {
		logf.FromContext(ctx).Error(err, "cert-manager ends", "program", name)
		util.SetExitCode(err)
	}
}

func runWebhook(ctx context.Context, configuration []byte) error {
	file := webhookfile.New()
	if err := file.DecodeAndConfigure(configuration); err != nil {
		return err
	}
	config := file.Config
	if err := apply(config.FeatureGates, &config.Logging, validation.ValidateWebhookConfiguration(config, nil)); err != nil {
		return err
	}
	label := func(s *server.Server) {
		if source, isDynamic := s.CertificateSource.(*tls.DynamicSource); isDynamic {
			source.Authority.(*authority.DynamicAuthority).SecretLabels = labels
		}
	}
	server, err := webhook.NewCertManagerWebhookServer(logf.FromContext(ctx), *config, label)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// apply checks a configuration and makes true what it says about the whole process.
func apply(gates map[string]bool, logging *logsapi.LoggingConfiguration, wrong field.ErrorList) error {
	if len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("featureGates: %w", err)
	}
	return logf.ValidateAndApply(logging)
}
