# Names for what turnup and cargo do: every target is one call, the logic is in the program. `make` alone shows the targets.
# More options go into ARGS: make down ARGS=--yes

.DEFAULT_GOAL := help
.PHONY: help build packages up config plan provision bootstrap addons validate status kubeconfig down doctor \
	test lint fmt clippy plain doc deny advisories check bench bench-kconfig bench-scale bench-wizard install clean test-cis test-crash test-settings test-clouds test-upgrade test-backup test-heal test-restore test-addons test-bench

# Built first, with output; then run quietly: cargo replaces itself with turnup.
TURNUP := cargo run --quiet --release --locked --
# Tests with these words in their names create hosts, or use what only one cluster at a time can have.
HOSTS := cluster_ fault_matrix
# Files of tests/it that need no root, no network and no other program. A filter also takes longer names, so kconfig_cli:: is among them.
FAST := tidy:: tidy_circles:: tidy_files:: documents:: glossary:: completions:: config_cli:: config_mistakes:: wizard_cli:: --skip kubeconfig_cli::
PREFIX ?= $(HOME)/.local
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man/man1
# With a PREFIX or DESTDIR of one's own the binary goes there, too, and fish's completions to where it looks for the system's.
INTO := $(if $(filter command environment,$(origin PREFIX) $(origin DESTDIR)),--no-track --root "$(DESTDIR)$(PREFIX)")
FISHDIR ?= $(if $(INTO),$(DATADIR)/fish/vendor_completions.d,$(HOME)/.config/fish/completions)
CARGO_DENY := target/tools/bin/cargo-deny
export RUSTDOCFLAGS := -D warnings

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 17

# The cluster

up: packages ## Everything: hosts, nodes, addons, checks; goes on where it stopped
	@$(TURNUP) up --defaults $(ARGS)
config: build ## The wizard
	@$(TURNUP) config $(ARGS)
plan: build ## What `make up` would do now, and why
	@$(TURNUP) plan $(ARGS)
provision: build ## Phase 1 alone: hosts
	@$(TURNUP) provision $(ARGS)
bootstrap: build ## Phase 2 alone: hosts become nodes
	@$(TURNUP) bootstrap $(ARGS)
addons: build ## Phase 3 alone: what runs in the cluster from the start
	@$(TURNUP) addons $(ARGS)
validate: build ## Do nodes, pods, Services and DNS work?
	@$(TURNUP) validate $(ARGS)
status: build ## How the cluster stands
	@$(TURNUP) status $(ARGS)
kubeconfig: build ## The path of the administrator's kubeconfig
	@$(TURNUP) kubeconfig $(ARGS)
down: build ## Delete the cluster with all its data
	@$(TURNUP) down $(ARGS)
doctor: build ## What this machine has and lacks
	@$(TURNUP) doctor $(ARGS)
bench: packages ## The times of a turn-up, next to kubeadm's
	@$(TURNUP) bench $(ARGS)

# The program

build: ## The one binary
	@cargo build --release --locked
packages: build ## Install the missing packages of the system, by name
	@$(TURNUP) --quiet doctor --install
test: ## All tests, the real cluster included; needs root
	@cargo run --quiet --locked --all-features -- --quiet doctor --install --target development
	cargo test --locked --workspace --all-features --no-run
	@$(MAKE) --no-print-directory --jobs=2 test-hosts test-rest
test-fast: ## Unit tests and tests of the command line: no root, no hosts, under two minutes once built
	cargo test --locked --workspace --all-features --lib
	cargo test --locked --all-features --test it -- $(FAST)
reference: export INSTA_UPDATE = always
reference: ## Write docs/commands.md, docs/settings.md and the table of what settings reach again
	cargo test --locked --all-features --lib -- forecast::origin
	cargo test --locked --all-features --test it -- reference::
# Tests that create hosts run one at a time and are mostly idle; the others run concurrently at lower priority.
# Neither half may call `cargo run`: it builds turnup with other features of its dependencies than `cargo test`, and
# replaces the binary that the other half's clusters were made with.
.PHONY: test-hosts test-rest test-fast reference
test-hosts:
	cargo test --locked --workspace --all-features -- $(HOSTS)
test-rest:
	nice -n 5 cargo test --locked --workspace --all-features -- $(addprefix --skip ,$(HOSTS))
test-crash: ## Kills turnup at every effect, here and on hosts, and prints the table of docs/crash.md; needs root
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_crash installs_that_were_killed
test-components: ## Tables of flags, fields and gates, and random configurations, against the programs of every pinned version, which it builds
	cargo test --locked --all-features --lib -- --ignored own_fields_tests own_parse_tests random_tests machine_authenticator machine_identity --skip draw_the_sample
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 components_of_every_version
test-cis: ## The automated items of the CIS benchmark on real hosts and on what is rendered; needs root
	cargo test --locked --all-features --test it -- --include-ignored cis:: cis_rules::
test-settings: ## Settings where they act: components, hosts and addons on real hosts, files of every target; needs root
	cargo test --locked --all-features --test it -- --include-ignored cluster_settings cluster_systems cluster_kernel cluster_places cluster_random user_data_boot cluster_addons cluster_assets config_reach config_poison
test-upgrade: ## From one minor version of Kubernetes to the next with drains and budgets, and hosts of node groups renewed, on real hosts; needs root
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_upgrade cluster_renew
test-rotate: ## Every keyset rotated on real hosts under requests, with a kill in the middle; needs root
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_rotate
test-backup: ## Backups of etcd, stores for them, and the way back to one by hand, on real hosts; needs root
	cargo test --locked --all-features --lib -- --ignored backup::store backup::blob
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_backup
test-heal: ## Lost members, hosts, machines and disks of the control plane, and what comes back by itself, on real hosts; needs root
	cargo test --locked --all-features --test it -- --include-ignored --test-threads=1 cluster_disk cluster_dns cluster_gates cluster_members cluster_ha cluster_heal cluster_kubelets cluster_machines cluster_names cluster_quota cluster_replaced
	cargo test --locked --all-features --lib -- --ignored --nocapture rejoin_
test-restore: ## The majority of etcd lost, all of it, and back on purpose, with kills, on real hosts; needs root
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_restore
test-addons: ## Addons that are off by default, on real hosts; needs root
	cargo test --locked --all-features --lib -- --ignored traefik_run ebs_run pulled_run compute_controller_run
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_metrics cluster_storage cluster_exporters cluster_policies cluster_snapshots cluster_gateway cluster_traefik cluster_addon_manager cluster_manifests cluster_certificates cluster_logs cluster_webhooks
test-bench: ## `turnup bench`, one small round next to kubeadm: every milestone is reached; needs root
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cluster_bench
test-clouds: ## The clouds' modules with the real providers (built once, some minutes) against emulators of their APIs
	cargo test --locked --all-features --lib -- --ignored dns::cloud_zone cloud_controller_run
	cargo test --locked --all-features --test it -- --ignored --test-threads=1 cloud_emulators
bench-kconfig: ## Our conf next to the kernel's and kconfiglib: time, memory, instructions; ARGS=--assert judges
	cargo bench --locked --bench kconfig -- $(ARGS)
bench-wizard: ## The wizard on Linux's tree: time from a key to the drawn screen; ARGS=--assert judges
	cargo bench --locked --bench wizard -- $(ARGS)
bench-scale: ## 100 and 1,000 simulated hosts: time and memory; ARGS=--assert judges
	cargo bench --locked --features test-fakes --bench scale -- $(ARGS)
lint: fmt clippy plain doc ## Format, lints, documentation
fmt: ## Is the code formatted?
	cargo fmt --all --check
clippy: ## Lints, all of them errors
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
plain: ## Lints of the binary that people get, without what only tests need
	cargo clippy --locked -- -D warnings
doc: ## The documentation of the code, with the architecture
	cargo doc --locked --workspace --all-features --no-deps
deny: $(CARGO_DENY) ## Licences, duplicate crates and sources of dependencies
	$(CARGO_DENY) --locked check licenses bans sources
advisories: $(CARGO_DENY) ## Known vulnerabilities; fetches the advisory database
	$(CARGO_DENY) --locked check advisories
check: lint deny test ## Everything that a change has to pass
install: ## turnup, man pages and completions below PREFIX, or DESTDIR and PREFIX; without: cargo's bin directory and ~/.local
	cargo install --locked --path . $(INTO)
	@$(TURNUP) man --dir "$(DESTDIR)$(MANDIR)"
	@$(TURNUP) completions bash --to "$(DESTDIR)$(DATADIR)/bash-completion/completions/turnup"
	@$(TURNUP) completions zsh --to "$(DESTDIR)$(DATADIR)/zsh/site-functions/_turnup"
	@$(TURNUP) completions fish --to "$(DESTDIR)$(FISHDIR)/turnup.fish"
clean: ## Remove what was built; clusters and the artifact cache stay
	cargo clean

# Unoptimised: it is built in half the time and runs for a second.
$(CARGO_DENY):
	cargo install --locked --debug --version 0.20.2 --root target/tools cargo-deny
