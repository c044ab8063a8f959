//! What to do about errors that clouds give again and again: words of their messages, each with a
//! class and a next step. Each cloud has its own in its directory.
//!
//! It only reads text. The words are of messages that people have published; the tests have them
//! with the place where each was found.

use crate::cloud::{CLOUDS, KnownError, known};
use crate::error::Class;

/// What an error is, and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// How the engine takes it.
    pub(super) class: Class,
    /// The next step.
    pub(super) text: String,
}

/// The first that fits counts: what is said precisely stands before what is said generally.
fn table() -> impl Iterator<Item = &'static KnownError> {
    BEFORE.iter().chain(CLOUDS.iter().flat_map(|cloud| cloud.known_errors())).chain(BEHIND)
}

/// Errors that clouds share, before their own: rates stand before quotas, whose words they use.
const BEFORE: &[KnownError] = &[known(
    &[
        &["ratelimitexceeded"],
        &["requestlimitexceeded"],
        &["throttling", "rate exceeded"],
        &["requeststhrottled"],
        &["429 too many requests"],
    ],
    Class::Transient,
    "the cloud wants fewer requests at a time: turnup config set phase1.terraform.parallelism=4",
)];

/// Errors that clouds share, behind their own.
const BEHIND: &[KnownError] = &[
    known(
        &[&["deletion protection is enabled"]],
        Class::Precondition,
        "it is protected from deletion: turnup config set phase1.deletion_protection=n, turnup provision, then turnup down",
    ),
    known(
        &[
            &["alreadyexists"],
            &["already exists, alreadyexists"],
            &["already exists - to be managed via terraform"],
            &["entityalreadyexists"],
            &["invalidgroup.duplicate"],
            &["invalidkeypair.duplicate"],
        ],
        Class::Precondition,
        "a resource of this name is there already, and not from this cluster: delete it, or take another phase1.cluster_name",
    ),
];

/// What to do about an error with this text; none when it is of no known kind.
pub(super) fn find(text: &str) -> Option<Advice> {
    // ASCII only, so that places in one are places in the other.
    let lower = text.to_ascii_lowercase();
    let fits = |known: &&KnownError| known.words.iter().any(|words| words.iter().all(|word| lower.contains(word)));
    let known = table().find(fits)?;
    let name = known.named.iter().find_map(|(start, end)| between(text, &lower, start, end));
    let advice = name.map_or_else(|| known.otherwise.to_owned(), |name| known.text.replace("{}", name));
    Some(Advice { class: known.class, text: advice })
}

fn between<'t>(text: &'t str, lower: &str, start: &str, end: &str) -> Option<&'t str> {
    let from = lower.find(&start.to_ascii_lowercase())? + start.len();
    let rest = &text[from..];
    let name = rest.split(end).next()?.trim_end_matches('.');
    (!name.is_empty() && name.len() < 80 && !name.contains('\n')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each message as published in an issue, shortened at its ends, with the issue.
    const PUBLISHED: &[(&str, &str)] = &[
        (
            "terraform-google-modules/cloud-foundation-training#17",
            "Error creating Network: googleapi: Error 403: Access Not Configured. Compute Engine API has not been used in project 1025699268247 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=1025699268247 then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry., accessNotConfigured",
        ),
        (
            "gruntwork-io/terraform-google-gke#53",
            "Error creating Network: googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/my-proj/global/networks/cluster-dev1-network-yl0n-network', forbidden",
        ),
        (
            "jenkins-x/terraform-google-jx#108",
            "google: could not find default credentials. See https://developers.google.com/accounts/docs/application-default-credentials for more information.",
        ),
        (
            "hashicorp/terraform-provider-google#20573",
            "Error waiting for instance to create: Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 176.0 in region us-central1.",
        ),
        (
            "google/go-cloud#244",
            "googleapi: Error 403: (2) Insufficient regional quota to satisfy request for resource: \"CPUS\". The request requires '9.0' and is short '1.0'. The regional quota is '8.0' with '8.0' available., forbidden",
        ),
        (
            "hashicorp/terraform-provider-google#8360",
            "googleapi: Error 403: Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per 100 seconds' of service 'compute.googleapis.com' for consumer 'project_number:123456'., rateLimitExceeded",
        ),
        (
            "forseti-security/terraform-google-forseti#631",
            "Error waiting for instance to create: The zone 'projects/[project-id]/zones/us-west1-c' does not have enough resources available to fulfill the request.  Try a different zone, or try again later",
        ),
        (
            "hashicorp/terraform-provider-google#139",
            "Error creating address: googleapi: Error 409: The resource 'projects/dft-vault/regions/us-east1/addresses/vault-server-ip' already exists, alreadyExists",
        ),
        (
            "aws-quickstart/terraform-aws-vpc#6",
            "error configuring Terraform AWS Provider: no valid credential sources for Terraform AWS Provider found.",
        ),
        (
            "aws-samples/serverless-patterns#970",
            "error configuring Terraform AWS Provider: error validating provider credentials: error calling sts:GetCallerIdentity: operation error STS: GetCallerIdentity, https response error StatusCode: 403, RequestID: 6d1b2715-c592-449e-8c50-f6f8a7e27ca7, api error ExpiredToken: The security token included in the request is expired",
        ),
        (
            "aws/amazon-cloudwatch-agent-test#256",
            "creating EC2 Instance: VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 1247 allows for the instance bucket that the specified instance type belongs to.",
        ),
        (
            "hashicorp/terraform-provider-aws#1496",
            "InsufficientInstanceCapacity: We currently do not have sufficient m4.4xlarge capacity in the Availability Zone you requested (ap-northeast-1d).",
        ),
        (
            "ministryofjustice/cloud-platform-environments#4030",
            "Error creating IAM User terraform-user: AccessDenied: User: arn:aws:iam::754256621582:user/cloud-platform/manager-concourse is not authorized to perform: iam:CreateUser on resource: arn:aws:iam::754256621582:user/terraform-user",
        ),
        (
            "hashicorp/terraform-provider-aws#8720",
            "collecting instance settings: reading EC2 Instance Type (t2.micro): UnauthorizedOperation: You are not authorized to perform this operation.",
        ),
        ("hashicorp/terraform#3579", "RequestLimitExceeded: Request limit exceeded"),
        (
            "hashicorp/terraform#20344",
            "Error creating Security Group: InvalidGroup.Duplicate: The security group 'myproject_database' already exists for VPC 'vpc-dd1571bb'",
        ),
        (
            "hashicorp/terraform-provider-azurerm#21776",
            "unable to build authorizer for Resource Manager API: could not configure AzureCli Authorizer: obtaining tenant ID: running Azure CLI: exit status 1: ERROR: Please run 'az login' to setup account.",
        ),
        (
            "Azure/azure-cli#14244",
            "Get Token request returned http error: 400 and server response: {\"error\":\"invalid_grant\",\"error_description\":\"AADSTS700082: The refresh token has expired due to inactivity.\"}",
        ),
        (
            "hashicorp/terraform-provider-azurerm#495",
            "Status=403 Code=\"AuthorizationFailed\" Message=\"The client '06ce6bb4-51ed-4d42-8bac-7d0f53d2e1f4' with object id '06ce6bb4-51ed-4d42-8bac-7d0f53d2e1f4' does not have authorization to perform action 'Microsoft.Authorization/roleAssignments/write' over scope '/subscriptions/743f6ed6-83a8-46f0-822d-ea93b953952d'.\"",
        ),
        (
            "nforgeio/neonKUBE#1670",
            "The subscription is not registered to use namespace 'Microsoft.Compute'. See https://aka.ms/rps-not-found for how to register subscriptions. ErrorCode: MissingSubscriptionRegistration",
        ),
        (
            "nforgeio/neonKUBE#1671",
            "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional details - Deployment Model: Resource Manager, Location: centralus, Current Limit: 10, Current Usage: 8, Additional Required: 4",
        ),
        (
            "Azure-Samples/azuresandbox#70",
            "performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: SkuNotAvailable: The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_B2s' is currently not available in location 'eastus'.",
        ),
        (
            "Azure/alzlib#168",
            "RESPONSE 429: 429 Too Many Requests ERROR CODE: ResourceRequestsThrottled Number of requests for Microsoft.Authorization exceeded the limit of '120' for time interval '00:01:00'.",
        ),
        (
            "hashicorp/terraform-provider-azurerm#17478",
            "waiting for deletion of Private Endpoint \"pep\" (Resource Group \"rsg\"): Code=\"ScopeLocked\" Message=\"Call to Microsoft.Storage/storageAccounts failed. Error message: The scope 'pep' cannot perform delete operation because following scope(s) are locked: 'account'. Please remove the lock and try again.\"",
        ),
        (
            "rebuy-de/aws-nuke#1240",
            "OperationNotPermitted: Load balancer 'arn:aws:elasticloadbalancing:us-east-1:accountid:loadbalancer/abcd' cannot be deleted because deletion protection is enabled",
        ),
        (
            "terraform-google-modules/terraform-google-vm#45",
            "Error deleting region instance group manager: googleapi: Error 400: The instance_group_manager resource 'projects/rnm/regions/europe-west1/instanceGroupManagers/squid-europe-west1-mig' is already being used by 'projects/rnm/regions/europe-west1/backendServices/squid-ilb-europe-west1',resourceInUseByAnotherResource",
        ),
        (
            "microsoft/azure-pipelines-terraform#254",
            "Already exists - to be managed via Terraform this resource needs to be imported into the State.",
        ),
    ];

    #[test]
    fn published_messages_get_their_advice() {
        let told: Vec<String> = PUBLISHED
            .iter()
            .map(|(source, message)| match find(message) {
                Some(advice) => format!("{source}\n  {:?}: {}", advice.class, advice.text),
                None => format!("{source}\n  nothing"),
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
        assert_eq!(find("creating Network: it did not want to"), None);
    }

    #[test]
    fn every_row_is_there_for_a_published_message() {
        let matched = |known: &KnownError| {
            PUBLISHED.iter().any(|(_, message)| {
                let lower = message.to_ascii_lowercase();
                known.words.iter().any(|words| words.iter().all(|word| lower.contains(word)))
            })
        };
        // `oauth2 … token expired` is told in kushin77/self-hosted-runner#2302 and
        // terraform-example-foundation#235 without its whole text.
        let idle: Vec<&str> = table().filter(|known| !matched(known)).map(|known| known.text).collect();
        assert_eq!(idle.len(), 1, "{idle:#?}");
    }
}
