//! The tests of the definition, among those of the program.

use steersman::{Network, testing};

#[tokio::test]
async fn the_payments_desk_does_what_its_tests_say() {
    let definition = Network::from_path("tests/payments").unwrap();
    let network = definition.build().unwrap();
    assert_eq!(network.tests().count(), 3);
    for name in network.tests() {
        let report = testing::run(&network, name).await;
        assert!(report.failures.is_empty(), "{name}: {:?}", report.failures);
    }
}
