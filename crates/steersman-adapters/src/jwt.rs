//! JSON web tokens, signed with a private key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value as Json, json};

/// A private key with the algorithm that it is for.
enum Key {
    Rsa(RsaKeyPair),
    Curve(&'static str, EcdsaKeyPair),
}

impl Key {
    fn of(pem: &str) -> Option<Self> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
        let der = der.secret_pkcs8_der();
        if let Ok(key) = RsaKeyPair::from_pkcs8(der) {
            return Some(Self::Rsa(key));
        }
        let curves = [
            ("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            ("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ];
        curves.into_iter().find_map(|(name, curve)| {
            let key = EcdsaKeyPair::from_pkcs8(curve, der, &SystemRandom::new()).ok()?;
            Some(Self::Curve(name, key))
        })
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Curve(name, _) => name,
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature)
                    .ok()?;
                Some(signature)
            }
            Self::Curve(_, key) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
        }
    }
}

/// Signs claims with a private key in PEM (PKCS #8; RSA, P-256 or P-384). `id` names the key to whom verifies. `None` if the key cannot be
/// used.
pub(crate) fn signed(pem: &str, id: Option<&str>, claims: &Json) -> Option<String> {
    let key = Key::of(pem)?;
    let mut header = json!({ "alg": key.algorithm(), "typ": "JWT" });
    if let Some(id) = id {
        header["kid"] = id.into();
    }
    let part = |json: &Json| URL_SAFE_NO_PAD.encode(json.to_string());
    let text = format!("{}.{}", part(&header), part(claims));
    let signature = key.sign(text.as_bytes())?;
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
